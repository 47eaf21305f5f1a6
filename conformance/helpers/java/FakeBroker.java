import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;

/**
 * Fake brokers for programs in Java: starts {@code fakebrokers serve} and speaks its control API.
 *
 * <pre>
 *   var broker = new FakeBroker("rabbitmq-stream");
 *   broker.call("create_stream", "{\"name\": \"orders\"}");
 * </pre>
 *
 * What a broker can be told is listed in its /openapi.json. Whatever is refused throws, with what was expected. The
 * broker ends with the program. Runs on Java 17 and newer, without further libraries.
 */
public final class FakeBroker {
  /** Where clients connect. */
  public final String url;
  public final String host;
  public final int port;

  private final HttpClient http = HttpClient.newHttpClient();
  private final String control;

  /**
   * Starts a broker, with further flags of {@code fakebrokers serve}. The program is the words of $FAKEBROKERS, or
   * "fakebrokers".
   */
  public FakeBroker(String protocol, String... flags) throws IOException {
    String program = System.getenv().getOrDefault("FAKEBROKERS", "fakebrokers");
    List<String> words = new ArrayList<>(List.of(program.split(" ")));
    words.addAll(List.of("serve", protocol, "--control", "0"));
    words.addAll(List.of(flags));
    Process process = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
    String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
    if (line == null) {
      throw new IOException("fakebrokers did not start");
    }
    String[] ready = line.split(" ");
    String found = "";
    for (String word : ready) {
      found = word.startsWith("control=") ? word.substring("control=".length()) : found;
    }
    url = ready[2];
    host = URI.create(url).getHost();
    port = URI.create(url).getPort();
    control = found + "/brokers/" + protocol + "/";
  }

  /** Tells the broker something: an operation with its arguments as JSON. Returns JSON. */
  public String call(String operation, String given) throws IOException, InterruptedException {
    return answer(HttpRequest.newBuilder(URI.create(control + operation))
        .POST(HttpRequest.BodyPublishers.ofString(given)).build());
  }

  /** Asks for what an operation only reads; with a query such as "name=orders". Returns JSON. */
  public String ask(String operation, String query) throws IOException, InterruptedException {
    return answer(HttpRequest.newBuilder(URI.create(control + operation + "?" + query)).build());
  }

  private String answer(HttpRequest request) throws IOException, InterruptedException {
    HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() >= 300) {
      throw new IOException(request.uri() + ": " + answer.body());
    }
    return answer.body();
  }
}
