import com.sun.source.util.JavacTask;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.io.StringWriter;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import javax.tools.Diagnostic;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/**
 * What the parser of javac says of texts, in one process: java JavaSyntax.java.
 *
 * Reads texts, each as its length in bytes, a line feed, and that many bytes of UTF-8. Writes a line for each: "ok", or the first error
 * as its position (in UTF-16 units), a blank, and its code.
 */
public class JavaSyntax {
    public static void main(String[] args) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        while (true) {
            StringBuilder length = new StringBuilder();
            int next = in.read();
            for (; next >= '0' && next <= '9'; next = in.read()) length.append((char) next);
            if (next < 0) return;
            byte[] data = new byte[Integer.parseInt(length.toString())];
            in.readFully(data);
            out.println(verdict(compiler, new String(data, StandardCharsets.UTF_8)));
        }
    }

    private static String verdict(JavaCompiler compiler, String text) {
        String[] first = {"ok"};
        JavaFileObject file = new SimpleJavaFileObject(URI.create("string:///T.java"), JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                return text;
            }
        };
        try {
            JavacTask task = (JavacTask) compiler.getTask(new StringWriter(), null, found -> {
                if (found.getKind() == Diagnostic.Kind.ERROR && first[0].equals("ok"))
                    first[0] = found.getPosition() + " " + found.getCode();
            }, List.of("-proc:none"), null, List.of(file));
            task.parse();
        } catch (Exception | AssertionError | StackOverflowError thrown) {
            return "0 crash." + thrown.getClass().getSimpleName();
        }
        return first[0];
    }
}
