r"""The formats that JSON Schema names, as patterns that a whole string must match.

Each is as strict as the document that defines it. One format is no regular set: `idn-hostname`
(`NOT_REGULAR`). Of some the pattern takes not all strings: labels such as ``xn--...``, a 60th
second with an offset of no whole or half hours, and groups of `regex` that nest deep, have names or
are referred to are left out, so that no string is taken that is none. Where the format is negated,
the same strings are left out (`WIDENED`). Of a domain in `idn-email` the characters beyond ASCII
are not looked at. The local part of an address may have any length, as in the rule `Mailbox` that
JSON Schema names; servers need not take more than 64 characters.

Source: JSON Schema Validation 2020-12, section 7.3, and the documents that it names: RFC 3339 (date
and time), RFC 5321 (email), RFC 6531 (idn-email), RFC 1123 (hostname), RFC 2673 (ipv4), RFC 4291
(ipv6), RFC 3986 (uri), RFC 3987 (iri), RFC 6570 with its erratum 6937 (uri-template), RFC 4122
(uuid), RFC 6901 (json-pointer). For relative-json-pointer up to 2019-09
draft-handrews-relative-json-pointer-02, and from 2020-12 on the ABNF of
draft-bhutton-relative-json-pointer-00 (`LATER`).
"""

from __future__ import annotations


def _alternatives(*options: str) -> str:
    return "(?:" + "|".join(options) + ")"


_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = _alternatives(
    r"\d{4}-(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])",
    r"\d{4}-(?:0[469]|11)-(?:0[1-9]|[12]\d|30)",
    r"\d{4}-02-(?:0[1-9]|1\d|2[0-8])",
    _LEAP_YEAR + "-02-29",
)
_OFFSET = r"(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"


def _leap_seconds() -> tuple[str, str]:
    """Times of a 60th second, which is at 23:59:60 in UTC: on that day, and on the next one there.

    Offsets are multiples of half an hour: with all of them there would be ten thousands of states.
    """
    same, following = [r"23:59:60(?:\.\d+)?(?:[zZ]|[+-]00:00)"], []
    for ahead in range(30, 24 * 60, 30):  # minutes by which the local time is ahead, and a day less behind
        there, behind = ahead - 1, 1440 - ahead
        local = rf"{there // 60:02}:{there % 60:02}:60(?:\.\d+)?"
        following.append(rf"{local}\+{ahead // 60:02}:{ahead % 60:02}")
        same.append(rf"{local}-{behind // 60:02}:{behind % 60:02}")
    return _alternatives(*same), _alternatives(*following)


_LOCAL_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?"
_PLAIN_TIME = _LOCAL_TIME + _OFFSET
_LEAP, _LEAP_NEXT_DAY = _leap_seconds()
_TIME = _alternatives(_PLAIN_TIME, _LEAP, _LEAP_NEXT_DAY)
_DATE_TIME = _alternatives(
    rf"{_DATE}[tT]{_PLAIN_TIME}",
    rf"\d{{4}}-(?:06-30|12-31)[tT]{_LEAP}",
    rf"\d{{4}}-(?:07-01|01-01)[tT]{_LEAP_NEXT_DAY}",
)
_DOUBTED = r"(?:[01]\d|2[0-3]):[0-5]\d:60(?:\.\d+)?"  # behind it an offset of no whole or half hours
_DOUBTED_OFFSET = r"(?:[01]\d|2[0-3]):(?!00|30)[0-5]\d"
_WIDE_TIME = _alternatives(_TIME, rf"{_DOUBTED}[+-]{_DOUBTED_OFFSET}")
_WIDE_DATE_TIME = _alternatives(
    _DATE_TIME,
    rf"\d{{4}}-(?:06-30|12-31)[tT]{_DOUBTED}-{_DOUBTED_OFFSET}",
    rf"\d{{4}}-(?:07-01|01-01)[tT]{_DOUBTED}\+{_DOUBTED_OFFSET}",
)
_WEEKS = r"\d+W"
_CLOCK = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_CALENDAR = r"(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_NOT_RESERVED = r"(?!..--)"  # a label of IDNA, such as xn--..., would have to be decoded
_HOSTNAME = rf"{_NOT_RESERVED}{_LABEL}(?:\.{_NOT_RESERVED}{_LABEL})*"
_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_GROUP = "[0-9A-Fa-f]{1,4}"
_IPV6 = _alternatives(
    rf"(?:{_GROUP}:){{6}}(?:{_GROUP}:{_GROUP}|{_IPV4})",
    *(
        # n groups before the double colon, at most so many behind it
        (rf"(?:{_GROUP}(?::{_GROUP}){{0,{n - 1}}})?" if n else "")
        + rf"::(?:{_GROUP}:){{{5 - n}}}(?:{_GROUP}:{_GROUP}|{_IPV4})"
        for n in range(6)
    ),
    rf"(?:{_GROUP}(?::{_GROUP}){{0,5}})?::{_GROUP}",
    rf"(?:{_GROUP}(?::{_GROUP}){{0,6}})?::",
)
_ATEXT = "A-Za-z0-9!#$%&'*+/=?^_`{|}~"
_ADDRESS = rf"\[(?:{_IPV4}|IPv6:{_IPV6})\]"
_BEYOND = "\\u{80}-\\u{10FFFF}"


def _email(beyond: str, domain: str) -> str:
    """The pattern of an address. beyond : characters beyond ASCII that the local part may have."""
    atom = rf"[{_ATEXT}{beyond}\-]+"
    quoted = rf'"(?:[ !#-\[\]-~{beyond}]|\\[ -~])*"'
    return rf"(?:{atom}(?:\.{atom})*|{quoted})@(?:{domain}|{_ADDRESS})"


_LETTER = rf"[A-Za-z0-9{_BEYOND}]"
_IDN_LABEL = rf"{_LETTER}(?:[A-Za-z0-9{_BEYOND}\-]*{_LETTER})?"
_IDN_DOMAIN = rf"{_IDN_LABEL}(?:\.{_IDN_LABEL})*"
_PLANES = "".join(rf"\u{{{plane:X}0000}}-\u{{{plane:X}FFFD}}" for plane in range(1, 14))
_WIDE = rf"\u{{A0}}-\u{{D7FF}}\u{{F900}}-\u{{FDCF}}\u{{FDF0}}-\u{{FFEF}}{_PLANES}\u{{E1000}}-\u{{EFFFD}}"
_PRIVATE = "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}"


def _uri(wide: str, private: str) -> tuple[str, str]:
    """The patterns of a URI and of a reference.

    wide : characters that are allowed beside those of RFC 3986.
    private : those allowed in the query only.
    """
    unreserved = rf"A-Za-z0-9._~{wide}\-"
    percent = "%[0-9A-Fa-f]{2}"
    sub = r"!$&'()*+,;="
    pchar = rf"(?:[{unreserved}{sub}:@]|{percent})"
    authority_host = _alternatives(
        rf"\[(?:{_IPV6}|[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~{sub}:-]+)\]", rf"(?:[{unreserved}{sub}]|{percent})*"
    )
    authority = rf"(?:(?:[{unreserved}{sub}:]|{percent})*@)?{authority_host}(?::\d*)?"
    path = rf"(?:/{pchar}*)*"
    rootless = rf"{pchar}+{path}"
    no_scheme = rf"(?:[{unreserved}{sub}@]|{percent})+{path}"
    absolute = rf"/(?:{pchar}+{path})?"
    end = rf"(?:\?(?:{pchar}|[/?{private}])*)?(?:#(?:{pchar}|[/?])*)?"
    scheme = "[A-Za-z][A-Za-z0-9+.-]*:"
    uri = rf"{scheme}(?://{authority}{path}|{absolute}|{rootless}|){end}"
    relative = rf"(?://{authority}{path}|{absolute}|{no_scheme}|){end}"
    return uri, _alternatives(uri, relative)


_URI, _URI_REFERENCE = _uri("", "")
_IRI, _IRI_REFERENCE = _uri(_WIDE, _PRIVATE)
_VARCHAR = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})"
_VARIABLE = rf"{_VARCHAR}(?:\.?{_VARCHAR})*(?::[1-9]\d{{0,3}}|\*)?"
_LITERAL = rf"(?:[!#$&-;=?-\[\]_a-z~{_WIDE}{_PRIVATE}]|%[0-9A-Fa-f]{{2}})"
_POINTER = "(?:/(?:[^/~]|~[01])*)*".replace("[^/~]", "[\\0-.0-}\\x7f-\\u{10FFFF}]")
_NATURAL = r"(?:0|[1-9]\d*)"
_CATEGORIES = (
    "L LC Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Cs Co Cn"
)
_SYNTAX, _HEX = r"\^$\\.*+?()[\]{}|", "[0-9A-Fa-f]"
_NESTED = 3
"""The groups inside one another that the format `regex` takes; within a look-around it is one."""


def _ranges() -> str:
    r"""The ranges of a set that begin with a printable character of ASCII and do not end before it.

    Of those from `\xHH` to `\xHH`, and so with `\u`, those whose first digit grows.
    """
    found = []
    for digit in range(15):
        more = f"[{''.join(f'{one:x}{one:X}' for one in range(digit + 1, 16))}]"
        for kind, rest in (("x", "[0-9A-Fa-f]"), ("u", "[0-9A-Fa-f]{3}")):
            found.append(rf"\\{kind}[{digit:x}{digit:X}]{rest}-\\{kind}{more}{rest}")
    for code in range(0x20, 0x7F):
        if chr(code) not in "\\]-^":
            last = f"\\u{{{code:x}}}-" + (r"\[\^-\u{10FFFF}" if code < 0x5B else r"\u{10FFFF}")
            found.append(f"\\u{{{code:x}}}-" + (f"[{last}]" if code != 0x5B else r"[\[\^-\u{10FFFF}]"))
    return _alternatives(*found)


def _escaped(code: str, *others: str) -> str:
    """What stands behind a backslash. code : in the braces of an escape."""
    of_digits = rf"x{_HEX}{{2}}", rf"u{_HEX}{{4}}", rf"u\{{{code}\}}"
    return _alternatives(rf"[{_SYNTAX}/tnvfrdDwWsS]", "c[A-Za-z]", *of_digits, *others)


def _single(escaped: str, chars: str, quantifier: str) -> str:
    return rf"(?:[^{_SYNTAX}]|\.|\\{escaped}|{chars}){quantifier}|[|^$]|\\[bB]"


def _regex() -> str:
    r"""The pattern of patterns of ECMA 262 with the flag `u`, as far as an automaton can tell.

    Left out are: deeper groups; names of groups, and back-references; `\0`; in a set `^` but at its
    begin, most ranges that begin with an escape or beyond ASCII, and a hyphen that stands neither
    at begin or end nor behind a range; `\p` but for a general category by its short name; and
    `{n,m}` with 10 or more for n, unless m has more digits.
    """
    names = _alternatives(*_CATEGORIES.split(), "Any", "ASCII", "Assigned")
    escaped = _escaped(f"0*(?:{_HEX}{{1,5}}|10{_HEX}{{4}})", rf"[pP]\{{{names}\}}")
    chars = rf"\[\^?-?(?:{_ranges()}-?|[^\^\\\]\-]|\\(?:{escaped}|[b\-]))*-?\]"
    counts = _alternatives(
        r"\d+,?",
        *(rf"{n},(?:[{n}-9]|[1-9]\d+)" for n in range(10)),
        *(rf"[1-9]\d{{{n}}},[1-9]\d{{{n + 1},}}" for n in (1, 2)),
    )
    quantifier = rf"(?:(?:[*+?]|\{{{counts}\}})\??)?"
    single = _single(escaped, chars, quantifier)
    inside = rf"{single}|\((?:\?:)?(?:{single})*\){quantifier}"
    look = rf"\(\?<?[=!](?:{inside})*\)"
    for _ in range(_NESTED - 1):
        inside = rf"{single}|\((?:\?:)?(?:{inside})*\){quantifier}"
    return rf"(?:{inside}|{look})*"


def _wide_regex() -> str:
    r"""The pattern of all patterns of ECMA 262 with the flag `u`, and of some that are none.

    Numbers and ends of ranges are not compared, nor are names looked up; a set has any escapes.
    Within groups that nest deeper than `_NESTED` it is not asked whether parentheses are closed.
    """
    name = rf"<(?:[\w${_BEYOND}]|\\u(?:{_HEX}{{4}}|\{{{_HEX}+\}}))+>"
    escaped = _escaped(f"{_HEX}+", "[0-9]", f"k{name}", r"[pP]\{[^}]+\}")
    quantifier = r"(?:(?:[*+?]|\{\d+(?:,\d*)?\})\??)?"
    single = _single(escaped, r"\[(?:[^\]\\]|\\[^])*\]", quantifier)
    opened, closed = rf"\((?:\?(?:[:=!]|<[=!]|{name}|[ims]*(?:-[ims]*)?:))?", rf"\){quantifier}"
    inside = rf"(?:{single}|{opened}|{closed})*"
    for _ in range(_NESTED):
        inside = rf"(?:{single}|{opened}{inside}{closed})*"
    return inside


FORMATS = {
    "regex": _regex(),
    "date": _DATE,
    "time": _TIME,
    "date-time": _DATE_TIME,
    "duration": rf"P(?:{_WEEKS}|{_CALENDAR}(?:{_CLOCK})?|{_CLOCK})",
    "email": _email("", _DOMAIN),
    "idn-email": _email(_BEYOND, _IDN_DOMAIN),
    "hostname": _HOSTNAME,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI,
    "uri-reference": _URI_REFERENCE,
    "iri": _IRI,
    "iri-reference": _IRI_REFERENCE,
    "uri-template": rf"(?:{_LITERAL}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*",
    "uuid": "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"{_NATURAL}(?:#|{_POINTER})",
}
"""Format -> the pattern, as ECMA 262 reads it, that the whole string matches."""
_NATURAL_OFFSET = _OFFSET.replace("zZ", "Z")
_NATURAL_DATE = rf"(?!0000){_DATE}"
_DAYS = r"(?=\d)(?:\d{1,6}Y)?(?:\d{1,6}M)?(?:\d{1,6}W)?(?:\d{1,8}D)?"
_HOURS = r"(?=\d)(?:\d{1,5}H)?(?:\d{1,7}M)?(?:\d{1,9}(?:\.\d{1,9})?S)?"
WRITTEN = {
    "date": _NATURAL_DATE,
    "time": rf"{_LOCAL_TIME}{_NATURAL_OFFSET}?",
    "date-time": rf"{_NATURAL_DATE}T{_LOCAL_TIME}{_NATURAL_OFFSET}?",
    "duration": rf"-?P(?:{_DAYS}(?:T{_HOURS})?|T{_HOURS})",
}
"""Formats as pydantic, Python and JavaScript write and read them: local times have no offset, and
seconds of durations fractions; there is neither a year 0 nor a 60th second, and durations stay
below the 10 ** 9 days of Python's. Others are as in `FORMATS`."""
LATER = {
    "relative-json-pointer": (2020, "relative-json-pointer 2020-12", rf"{_NATURAL}(?:#|(?:[+-]{_NATURAL})?{_POINTER})"),
}
"""Format -> the draft from which on it is another one, the name of this one here, its pattern."""
LONGEST = {"hostname": 253}
"""Formats whose strings have a greatest number of characters."""
WIDENED = {"hostname": _DOMAIN, "time": _WIDE_TIME, "date-time": _WIDE_DATE_TIME, "regex": _wide_regex()}
"""Format that leaves out strings -> the pattern of all that may be of it."""
NOT_REGULAR = {"idn-hostname": "its rules ask for tables of a version of Unicode"}
"""Formats that no automaton decides, and why."""
