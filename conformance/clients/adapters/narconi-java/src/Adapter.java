import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import fakebrokers.kit.Body;
import fakebrokers.kit.Call;
import fakebrokers.kit.Facts;
import fakebrokers.kit.Failure;
import fakebrokers.kit.Kit;
import java.io.IOException;
import java.io.InputStream;
import java.net.ProtocolException;
import java.net.http.HttpClient;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * A small client on java.net.http behind the adapter protocol. Narconi has no client library; Narconi.java is what a
 * user makes of Narconi's document. It has the roles that need no WebSocket.
 */
public final class Adapter {
  private static final Map<String, Narconi> sessions = new ConcurrentHashMap<>();
  private static final Pattern READING = Pattern.compile("^parsing |[Ii]nvalid|unexpected|exceeded");
  private static final Predicate<String> NUMBER = Pattern.compile("\\d{1,18}").asMatchPredicate();
  private static final Kit kit = new Kit(facts());

  private Adapter() {}

  private static Facts facts() {
    Facts facts = new Facts();
    facts.adapter = "narconi-java";
    facts.library = "java.net.http";
    facts.library_version = Integer.toString(Runtime.version().feature());
    facts.protocols = List.of("narconi");
    facts.roles = List.of("admin", "http");
    facts.restart = "per_scenario"; // the connections of a client that is kept alive end when it is collected
    facts.caps.put("tls", true);
    facts.contract.put("times_silence", false); // the time-out of a request is for its response, says its documentation
    return facts;
  }

  public static void main(String[] args) {
    kit.classify = Adapter::classify;
    kit.clear = Adapter::clear;
    kit.op("connect", Adapter::connect);
    kit.op("state", Adapter::state);
    kit.op("close", call -> {
      session(call).close();
      return null;
    });
    kit.op("narc.ensure_queue", call -> {
      session(call).ensureQueue(call.timeoutMs, call.text("target"));
      return null;
    });
    kit.op("narc.delete_queue", call -> {
      session(call).deleteQueue(call.timeoutMs, call.text("target"));
      return null;
    });
    kit.op("narc.post", call -> {
      session(call).post(call.timeoutMs, call.text("target"), call.body(), call.object("headers"));
      Map<String, Object> outcome = new LinkedHashMap<>(Map.of("outcome", "acked", "meta", Map.of()));
      outcome.put("key", null);
      return outcome;
    });
    kit.op("narc.take", Adapter::take);
    kit.run();
  }

  private static Narconi session(Call call) {
    Narconi found = sessions.get(call.text("session"));
    if (found == null) {
      throw new Failure("closed", "no session " + call.text("session")).surely();
    }
    return found;
  }

  private static Object connect(Call call) throws Exception {
    JsonObject options = call.object("options");
    HttpClient.Builder builder = HttpClient.newBuilder();
    JsonElement tls = Call.member(options, "tls");
    if (tls != null && tls.getAsJsonObject().has("ca_file")) {
      builder.sslContext(trusting(Path.of(tls.getAsJsonObject().get("ca_file").getAsString())));
    }
    String base = (tls == null ? "http://" : "https://") + call.endpoints().get(0);
    JsonElement given = Call.member(options, "base");
    JsonElement project = Call.member(options, "project");
    sessions.put(call.text("session"), new Narconi(builder.build(), given == null ? base : given.getAsString(),
        project == null ? "test" : project.getAsString()));
    return null;
  }

  private static SSLContext trusting(Path file) throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (InputStream text = Files.newInputStream(file)) {
      for (Certificate each : CertificateFactory.getInstance("X.509").generateCertificates(text)) {
        store.setCertificateEntry(Integer.toString(store.size()), each);
      }
    }
    TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    factory.init(store);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, factory.getTrustManagers(), null);
    return context;
  }

  /** HTTP has requests and no session, so this is what the adapter was told last. */
  private static Object state(Call call) {
    Narconi found = sessions.get(call.text("session"));
    Map<String, Object> state = new LinkedHashMap<>();
    state.put("open", found != null && !found.isClosed);
    state.put("pending", null);
    return state;
  }

  private static Object take(Call call) throws Exception {
    HttpResponse<byte[]> response = session(call).take(call.timeoutMs, call.text("target"));
    Map<String, Object> result = new LinkedHashMap<>();
    result.put("message", response == null ? null : shown(call.text("target"), response));
    return result;
  }

  private static Map<String, Object> shown(String target, HttpResponse<byte[]> response) {
    Map<String, Object> headers = new LinkedHashMap<>();
    headers.put("Content-Type", response.headers().firstValue("Content-Type").orElse(null));
    response.headers().map().forEach((name, values) -> {
      if (name.startsWith(Narconi.CUSTOM)) { // the library's names are in lower case
        headers.put(name, String.join(", ", values));
      }
    });
    Map<String, Object> message = new LinkedHashMap<>();
    message.put("ref", kit.nextRef());
    message.put("sub", "");
    message.put("target", target);
    message.put("body", Body.report(response.body()));
    message.put("headers", headers);
    message.put("redelivered", response.headers().firstValue("x-msg-redelivered").map("true"::equals).orElse(null));
    message.put("ts", response.headers().firstValue("x-msg-timestamp").filter(NUMBER).map(Long::valueOf).orElse(null));
    message.put("position", null);
    message.put("meta", Map.of());
    return message;
  }

  /** A client that nobody holds any more lets its connections go when it is collected; it has no other end. */
  private static void clear() {
    sessions.values().forEach(Narconi::close);
    sessions.clear();
    System.gc();
  }

  private static Failure classify(Throwable error) {
    if (error instanceof HttpTimeoutException) {
      return new Failure("timeout", error.toString());
    }
    if (error instanceof IllegalArgumentException) {
      return new Failure("invalid", error.toString());
    }
    if (error instanceof ProtocolException) {
      return new Failure("protocol", error.toString());
    }
    // most of what it could not read has no type of its own, and neither has a connection that ended before the answer
    if (error.getClass() == IOException.class) {
      boolean isUnread = READING.matcher(String.valueOf(error.getMessage())).find();
      return new Failure(isUnread ? "protocol" : "connection", error.toString());
    }
    return Failure.classify(error);
  }
}
