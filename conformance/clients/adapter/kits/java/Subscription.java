package fakebrokers.kit;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;

/** Does with the messages of one subscription what the script wants ({@code on_message}). */
public final class Subscription {
  /** Whatever the library has for the subscription. */
  public volatile Object handle;

  public final String target;
  private final Kit kit;
  private final String sub;
  private final JsonObject plan;
  private final Queue<JsonObject> buffer = new ArrayDeque<>();
  private final Map<String, Object> natives = new ConcurrentHashMap<>();
  private int count;

  Subscription(Kit kit, Call call) {
    this.kit = kit;
    sub = call.text("sub");
    target = call.text("target", "");
    plan = call.object("on_message");
  }

  /**
   * Reports one message and does what the script wants; call it inside the library's callback. Throws where
   * the script wants the callback to fail.
   *
   * @param details the other members of the message: position, key, headers, redelivered, ts, meta
   */
  public void deliver(byte[] body, Map<String, ?> details) {
    deliver(Body.report(body), null, details);
  }

  /**
   * The same for a message that is settled, or has several parts.
   *
   * @param body a body as it is reported: see {@link Body#report}, which takes a list of parts, too
   * @param settles what the library needs to settle it, see {@link #nativeOf}; null where there is no such thing
   */
  public void deliver(JsonElement body, Object settles, Map<String, ?> details) {
    int ordinal;
    String ref;
    synchronized (this) {
      ordinal = ++count;
      ref = kit.nextRef();
      if (settles != null) {
        natives.put(ref, settles);
      }
      JsonObject message = message(ref, body, details);
      if ("event".equals(word("mode"))) {
        kit.emit("message", message);
      } else {
        buffer.add(message);
        notifyAll();
      }
    }
    boolean takesTime = sleeps(ordinal) || plan.has("do");
    boolean raised = true;
    try {
      if (sleeps(ordinal)) {
        sleep();
      }
      innerOps(ref);
      if (lists("raise_on", ordinal)) {
        throw new CallbackError("raise_on " + ordinal);
      }
      kit.trip("message");
      raised = false;
    } finally {
      if (takesTime) {
        kit.emit("returned", Map.of("sub", sub, "ref", ref, "raised", raised));
      }
    }
  }

  /**
   * What the library needs to settle a message, by its ref. It is kept, as scripts may settle twice, except where
   * {@code auto_settle} leaves the script nothing to settle.
   */
  public Object nativeOf(String ref) {
    Object found = natives.get(ref);
    if (found == null) {
      throw new Failure("invalid", "no message " + ref + " to settle");
    }
    return found;
  }

  private JsonObject message(String ref, JsonElement body, Map<String, ?> details) {
    JsonObject message = new JsonObject();
    message.addProperty("ref", ref);
    message.addProperty("sub", sub);
    message.addProperty("target", target);
    message.add("body", body);
    message.add("headers", new JsonObject());
    for (String name : new String[] {"redelivered", "ts", "position"}) {
      message.add(name, JsonNull.INSTANCE);
    }
    message.add("meta", new JsonObject());
    details.forEach((name, value) -> message.add(name, Kit.JSON.toJsonTree(value)));
    return message;
  }

  private String word(String name) {
    JsonElement found = Call.member(plan, name);
    return found == null ? "" : found.getAsString();
  }

  private boolean lists(String name, int ordinal) {
    return plan.has(name) && plan.getAsJsonArray(name).contains(Kit.JSON.toJsonTree(ordinal));
  }

  private boolean sleeps(int ordinal) {
    boolean wanted = plan.has("sleep_ms") && plan.get("sleep_ms").getAsLong() > 0;
    return wanted && (!plan.has("sleep_on") || lists("sleep_on", ordinal));
  }

  private void sleep() {
    try {
      Thread.sleep(plan.get("sleep_ms").getAsLong());
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void innerOps(String ref) {
    JsonArray wanted = plan.has("do") ? plan.getAsJsonArray("do").deepCopy() : new JsonArray();
    if ("ack".equals(word("auto_settle"))) {
      JsonObject settle = new JsonObject();
      settle.addProperty("op", "settle");
      settle.add("args", Kit.JSON.toJsonTree(Map.of("sub", sub, "ref", ref, "how", "ack")));
      wanted.add(settle);
    }
    for (int index = 0; index < wanted.size(); index++) {
      JsonObject inner = wanted.get(index).getAsJsonObject();
      JsonObject done = kit.attempt(new Call(inner)).join();
      done.addProperty("sub", sub);
      done.addProperty("ref", ref);
      done.addProperty("index", index);
      done.add("op", inner.get("op"));
      kit.emit("done", done);
    }
    if ("ack".equals(word("auto_settle"))) {
      natives.remove(ref);
    }
  }

  /** Up to {@code max} buffered messages: at once if there are any, else when one comes within the time. */
  synchronized JsonArray take(int max, double waitMs) throws InterruptedException {
    long deadline = System.nanoTime() + (long) (waitMs * 1e6);
    for (long left; buffer.isEmpty() && (left = deadline - System.nanoTime()) > 0; ) {
      wait(left / 1_000_000, (int) (left % 1_000_000));
    }
    JsonArray taken = new JsonArray();
    while (taken.size() < max && !buffer.isEmpty()) {
      taken.add(buffer.remove());
    }
    return taken;
  }

  /** What a callback throws because the script wants it to. */
  public static final class CallbackError extends RuntimeException {
    public CallbackError(String text) {
      super(text);
    }
  }
}
