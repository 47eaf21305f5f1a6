import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import fakebrokers.kit.Failure;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;

/** One project on one server, over java.net.http; what a user makes of Narconi's document. */
final class Narconi {
  /** Names that the server keeps; everything else it drops in silence. */
  static final String CUSTOM = "x-msg-x-";

  private static final int UNAUTHORIZED = 401;
  private static final int NO_CONTENT = 204;

  volatile boolean isClosed;
  private final Set<CompletableFuture<?>> underWay = ConcurrentHashMap.newKeySet();
  private final HttpClient client;
  private final String root;

  Narconi(HttpClient client, String base, String project) {
    this.client = client;
    root = base + "/v2/" + quoted(project) + "/queues/";
  }

  private static String quoted(String name) {
    return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
  }

  void ensureQueue(Double timeoutMs, String queue) throws IOException, InterruptedException {
    ask(timeoutMs, "PUT", quoted(queue), BodyPublishers.noBody(), Map.of(), 201);
  }

  void deleteQueue(Double timeoutMs, String queue) throws IOException, InterruptedException {
    ask(timeoutMs, "DELETE", quoted(queue), BodyPublishers.noBody(), Map.of(), NO_CONTENT);
  }

  void post(Double timeoutMs, String queue, byte[] body, JsonObject headers)
      throws IOException, InterruptedException {
    Map<String, String> sent = new LinkedHashMap<>();
    for (Map.Entry<String, JsonElement> header : headers.entrySet()) {
      sent.put(header.getKey(), metadata(header.getKey(), header.getValue()));
    }
    ask(timeoutMs, "POST", quoted(queue) + "/messages", BodyPublishers.ofByteArray(body), sent, 201);
  }

  /** A message, or null where the queue is empty. */
  HttpResponse<byte[]> take(Double timeoutMs, String queue) throws IOException, InterruptedException {
    HttpResponse<byte[]> response = ask(
        timeoutMs, "DELETE", quoted(queue) + "/messages", BodyPublishers.noBody(), Map.of(), 200, NO_CONTENT);
    return response.statusCode() == NO_CONTENT ? null : response;
  }

  private static String metadata(String name, JsonElement value) {
    String lower = name.toLowerCase(Locale.ROOT);
    boolean isText = value.isJsonPrimitive() && value.getAsJsonPrimitive().isString();
    if (lower.equals("content-type") && !isText) {
      throw new Failure("invalid", "Content-Type has to be text");
    }
    if (!lower.equals("content-type") && !lower.startsWith(CUSTOM)) {
      throw new Failure("invalid", "the name of metadata has to begin with " + CUSTOM + ": " + name);
    }
    return isText ? value.getAsString() : value.toString();
  }

  private HttpResponse<byte[]> ask(
      Double timeoutMs, String method, String path, BodyPublisher body, Map<String, String> headers, Integer... wanted)
      throws IOException, InterruptedException {
    if (isClosed) {
      throw new Failure("closed", "the session is closed").surely();
    }
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(root + path)).method(method, body);
    if (timeoutMs != null) {
      request.timeout(Duration.ofNanos((long) (timeoutMs * 1e6)));
    }
    headers.forEach(request::header); // an IllegalArgumentException for what HTTP cannot carry
    HttpResponse<byte[]> response = answer(client.sendAsync(request.build(), BodyHandlers.ofByteArray()));
    if (!List.of(wanted).contains(response.statusCode())) {
      throw refused(response);
    }
    return response;
  }

  /** Waits for an answer, as {@code HttpClient.send} does, which nobody could give up. */
  private HttpResponse<byte[]> answer(CompletableFuture<HttpResponse<byte[]>> asked)
      throws IOException, InterruptedException {
    underWay.add(asked);
    try {
      return asked.get();
    } catch (CancellationException given) {
      throw new Failure("closed", "the session was closed");
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof CancellationException) { // as it comes when the request was on its way
        throw new Failure("closed", "the session was closed");
      }
      if (failed.getCause() instanceof IOException problem) {
        throw problem;
      }
      throw new IllegalStateException(failed.getCause());
    } finally {
      underWay.remove(asked);
    }
  }

  /** The client itself has no end in Java 17: what is under way is cancelled. */
  void close() {
    isClosed = true;
    underWay.forEach(asked -> asked.cancel(true));
  }

  private static Failure refused(HttpResponse<byte[]> response) {
    String text = new String(response.body(), StandardCharsets.UTF_8);
    try {
      text = JsonParser.parseString(text).getAsJsonObject().get("message").getAsString();
    } catch (JsonParseException | IllegalStateException | NullPointerException | UnsupportedOperationException other) {
      // the server's own words, as they are
    }
    String kind = response.statusCode() == UNAUTHORIZED ? "auth" : "refused";
    return new Failure(kind, text, response.statusCode());
  }
}
