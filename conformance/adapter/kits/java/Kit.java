package fakebrokers.kit;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * The adapter's side of the protocol of fakebrokers: everything but the library. The protocol is described in
 * ADAPTER.md of fakebrokers.
 *
 * <pre>
 * Kit kit = new Kit(facts);
 * kit.op("connect", call -> { ... return Map.of(); });
 * kit.run();
 * </pre>
 *
 * An op returns its {@code result} (a map, or null for an empty one), or a {@link CompletionStage} of it, or
 * throws what the library threw.
 */
public final class Kit {
  static final Gson JSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
  private static final int VERSION = 1;
  private static final int OWN_BUG = 3; // exit code
  private static final long GOODBYE_MS = 1500; // after 2 s the process has to be gone

  /** Carries out one kind of request. */
  @FunctionalInterface
  public interface Op {
    Object call(Call call) throws Exception;
  }

  /** What the errors of the library mean; ends with {@link Failure#classify}. */
  public Function<Throwable, Failure> classify = Failure::classify;

  /** Part of reset: forget the sessions and drop their connections, fast. */
  public Runnable clear = () -> {};

  private final Facts facts;
  private final Map<String, Op> ops = new TreeMap<>();
  private final Map<String, Op> ordered = new TreeMap<>();
  private final Map<Long, Call> open = new ConcurrentHashMap<>();
  private final Map<String, Subscription> subscriptions = new ConcurrentHashMap<>();
  private final Map<String, Integer> armed = new ConcurrentHashMap<>();
  private final ExecutorService threads = Executors.newCachedThreadPool(Kit::daemon);
  private final PrintStream lines = new PrintStream(new FileOutputStream(FileDescriptor.out), false);
  private final long begun = System.nanoTime();
  private long written;

  /** Knows hello, echo, next, stats, reset and shutdown, and raise_next where callbacks may raise. */
  public Kit(Facts facts) {
    this.facts = facts;
    facts.caps.putIfAbsent("concurrent", true);
    facts.caps.putIfAbsent("stats", true);
    op("hello", this::hello);
    op("echo", call -> Map.of("body", Body.report(call.body())));
    op("next", this::next);
    op("stats", call -> Map.of("threads", Thread.activeCount()));
    op("reset", this::reset);
    op("shutdown", this::reset);
    if (facts.caps.containsKey("callback_raise")) {
      op("raise_next", this::raiseNext);
    }
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    return thread;
  }

  /** Adds an op. It runs on a thread of its own and may block; only ops that were added are declared. */
  public void op(String name, Op op) {
    ops.put(name, op);
  }

  /**
   * Adds an op that hands something to the library in line order: it runs on the thread that reads the lines, and
   * has to return at once, with a {@link CompletionStage} of what has to be waited for. Where handing over may
   * block, give it to an executor with one thread for each publisher.
   */
  public void ordered(String name, Op op) {
    ordered.put(name, op);
  }

  /** Serves stdin and stdout until the end of the input or {@code shutdown}; does not return. */
  public void run() {
    System.setOut(System.err); // what the library prints must not get between the lines
    var input = new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8);
    try (BufferedReader reader = new BufferedReader(input, 1 << 16)) {
      for (String line; (line = reader.readLine()) != null; ) {
        receive(new Call(JsonParser.parseString(line).getAsJsonObject()));
      }
    } catch (IOException | RuntimeException problem) {
      System.err.println("not a request: " + problem);
      leave(OWN_BUG);
    }
    try {
      threads.submit(this::drop).get(GOODBYE_MS, TimeUnit.MILLISECONDS);
    } catch (Exception late) {
      System.err.println("left without a goodbye: " + late);
    }
    leave(0);
  }

  private static void leave(int code) {
    System.err.flush();
    Runtime.getRuntime().halt(code); // threads of the library may not keep the process alive
  }

  private void receive(Call call) {
    open.put(call.id, call);
    if (ordered.containsKey(call.op)) {
      attempt(call).thenAccept(answer -> answer(call, answer));
    } else {
      threads.execute(() -> attempt(call).thenAccept(answer -> answer(call, answer)));
    }
  }

  /** Carries out one op: {@code ok} and {@code result}, or {@code error}; never fails. */
  CompletableFuture<JsonObject> attempt(Call call) {
    Op op = ops.getOrDefault(call.op, ordered.get(call.op));
    CompletableFuture<Object> result;
    try {
      if (op == null) {
        throw new Failure("unsupported", "no op " + call.op);
      }
      Object found = op.call(call);
      result = found instanceof CompletionStage<?> later
          ? later.<Object>thenApply(value -> value).toCompletableFuture()
          : CompletableFuture.completedFuture(found);
    } catch (Exception error) {
      result = CompletableFuture.failedFuture(error);
    }
    return result.handle(this::answerOf);
  }

  private JsonObject answerOf(Object result, Throwable error) {
    JsonObject answer = new JsonObject();
    answer.addProperty("ok", error == null);
    if (error == null) {
      answer.add("result", result == null ? new JsonObject() : JSON.toJsonTree(result));
    } else {
      boolean wrapped = error instanceof CompletionException && error.getCause() != null;
      answer.add("error", classify.apply(wrapped ? error.getCause() : error).report());
    }
    return answer;
  }

  /** Writes the answer to a request, unless reset has done that already. */
  private void answer(Call call, JsonObject answer) {
    if (open.remove(call.id) == null) {
      return;
    }
    answer.addProperty("id", call.id);
    write(answer);
    if (call.op.equals("shutdown")) {
      leave(0);
    }
  }

  /** Writes an event line; from any thread. */
  public void emit(String event, Map<String, ?> fields) {
    emit(event, JSON.toJsonTree(fields).getAsJsonObject());
  }

  void emit(String event, JsonObject fields) {
    fields.addProperty("event", event);
    write(fields);
  }

  private synchronized void write(JsonObject line) {
    line.addProperty("n", ++written);
    line.addProperty("t", (System.nanoTime() - begun) / 1000 / 1000.0);
    byte[] data = (JSON.toJson(line) + "\n").getBytes(StandardCharsets.UTF_8);
    lines.write(data, 0, data.length);
    lines.flush();
  }

  /** Throws if {@code raise_next} armed this kind of callback; call it last in each callback of the library. */
  public void trip(String callback) {
    boolean[] due = {false};
    armed.computeIfPresent(callback, (name, times) -> {
      due[0] = true;
      return times > 1 ? times - 1 : null;
    });
    if (due[0]) {
      throw new Subscription.CallbackError("raise_next " + callback);
    }
  }

  /** Keeps a new subscription under its name. Messages may come before the library has said yes. */
  public Subscription subscribed(Call call) {
    Subscription subscription = new Subscription(this, call);
    subscriptions.put(call.text("sub"), subscription);
    return subscription;
  }

  /** The subscription of that name, or a failure (closed). */
  public Subscription subscription(String name) {
    Subscription found = subscriptions.get(name);
    if (found == null) {
      throw new Failure("closed", "no subscription " + name).surely();
    }
    return found;
  }

  // the ops that every adapter has

  private Object hello(Call call) {
    Long version = call.integer("version");
    if (version == null || version != VERSION || !facts.protocols.contains(call.text("protocol"))) {
      throw new Failure("unsupported", "version 1 for " + String.join(", ", facts.protocols) + " only");
    }
    JsonObject said = JSON.toJsonTree(facts).getAsJsonObject();
    said.addProperty("version", VERSION);
    said.addProperty("language", "java");
    said.addProperty("runtime", Runtime.version().toString());
    TreeMap<String, Op> all = new TreeMap<>(ops);
    all.putAll(ordered);
    said.add("ops", JSON.toJsonTree(all.keySet()));
    return said;
  }

  private Object next(Call call) throws InterruptedException {
    Long max = call.integer("max");
    JsonElement waitMs = Call.member(call.args, "wait_ms");
    var taken = subscription(call.text("sub"))
        .take(max == null ? 1 : max.intValue(), waitMs == null ? 0 : waitMs.getAsDouble());
    return Map.of("messages", taken);
  }

  private Object raiseNext(Call call) {
    boolean can = facts.callbacks.contains(call.text("callback"));
    if (can) {
      Long times = call.integer("times");
      armed.put(call.text("callback"), times == null ? 1 : times.intValue());
    }
    return Map.of("armed", can);
  }

  /** Answers what is open with cancelled, and drops everything. */
  private Object reset(Call call) {
    for (Call other : open.values()) {
      if (other.id != call.id) {
        answer(other, answerOf(null, new Failure("cancelled", "")));
      }
    }
    drop();
    return null;
  }

  private void drop() {
    clear.run();
    subscriptions.clear();
    armed.clear();
  }
}
