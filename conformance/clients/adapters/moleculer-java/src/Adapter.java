import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import fakebrokers.kit.Call;
import fakebrokers.kit.Facts;
import fakebrokers.kit.Failure;
import fakebrokers.kit.Kit;
import fakebrokers.kit.Subscription;
import io.datatree.Promise;
import io.datatree.Tree;
import io.nats.client.Connection;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import services.moleculer.ServiceBroker;
import services.moleculer.config.ServiceBrokerConfig;
import services.moleculer.context.CallOptions;
import services.moleculer.context.Context;
import services.moleculer.error.MoleculerError;
import services.moleculer.error.RequestRejectedError;
import services.moleculer.error.RequestTimeoutError;
import services.moleculer.eventbus.Groups;
import services.moleculer.service.Action;
import services.moleculer.transporter.NatsTransporter;
import services.moleculer.transporter.Transporter;

/**
 * moleculer-java (https://github.com/moleculer-java/moleculer-java) over NATS behind the adapter protocol. A session is
 * one ServiceBroker; what a scenario does not set is the library's default. It speaks version 4 of the protocol, that of
 * Moleculer 0.14. It cannot take a service back, and streams are not asked for.
 */
public final class Adapter {
  private static final Map<String, Session> sessions = new ConcurrentHashMap<>();
  private static final AtomicInteger listeners = new AtomicInteger();
  private static final Kit kit = new Kit(facts());
  private static final long HAND_OVER_MS = 500;

  private Adapter() {}

  /** Shows what the event that tells of a connection is behind. */
  private static final class Linked extends NatsTransporter {
    Linked(String... urls) {
      super(urls);
    }

    boolean isOpen() {
      Connection current = client;
      return current != null && current.getStatus() == Connection.Status.CONNECTED;
    }
  }

  /** A broker under its name. */
  private static final class Session {
    final String name;
    final ServiceBroker broker;
    final boolean tells;
    final ExecutorService turns = Executors.newSingleThreadExecutor(work -> {
      Thread thread = new Thread(work);
      thread.setDaemon(true);
      return thread;
    });
    volatile boolean closing;

    Session(String name, ServiceBroker broker, boolean tells) {
      this.name = name;
      this.broker = broker;
      this.tells = tells;
    }

    Linked transporter() {
      return (Linked) broker.getConfig().getTransporter();
    }

    /** Waits until all that was asked for so far is with the library, but no longer where that blocks. */
    void handOver() throws Exception {
      try {
        turns.submit(() -> {}).get(HAND_OVER_MS, TimeUnit.MILLISECONDS);
      } catch (TimeoutException blocked) {
        return;
      }
    }

    void changed(boolean now) {
      if (tells) {
        String what = now ? "connected" : closing ? "disconnected" : "connection_lost";
        kit.emit("session", Map.of("session", name, "what", what, "text", ""));
        kit.trip("session");
      }
    }
  }

  private static Facts facts() {
    Facts facts = new Facts();
    facts.adapter = "moleculer-java";
    facts.library = "com.github.berkesa:moleculer-java";
    facts.library_version = ServiceBroker.SOFTWARE_VERSION;
    facts.protocols = List.of("moleculer");
    facts.roles = List.of("caller", "service", "emitter", "listener");
    facts.restart = "per_scenario"; // its pools of threads are those of the process
    for (String word : List.of("auto_reconnect", "callback_raise", "callback_sleep", "endpoints", "reentrant")) {
      facts.caps.put(word, true);
    }
    // INFO goes out a second behind the subscriptions; what packets and listeners throw is logged
    for (String word : List.of("repeats", "surfaces_again", "stores_positions", "own_credit", "leaves_dropped",
        "takes_existing")) {
      facts.contract.put(word, false);
    }
    facts.transporters = List.of("nats");
    facts.serializers = List.of("JSON");
    facts.callbacks = List.of("message", "session");
    return facts;
  }

  public static void main(String[] args) {
    kit.classify = Adapter::classify;
    kit.clear = Adapter::clear;
    kit.op("connect", Adapter::connect);
    kit.op("state", Adapter::state);
    kit.op("close", Adapter::close);
    kit.op("mol.serve", Adapter::serve);
    kit.ordered("mol.call", Adapter::call);
    kit.ordered("mol.emit", call -> inTurn(call, broker -> {
      broker.emit(call.text("event"), Json.tree(call.args.get("data")), groups(call));
      return Promise.resolve();
    }).thenApply(done -> null));
    kit.ordered("mol.broadcast", call -> inTurn(call, broker -> {
      broker.broadcast(call.text("event"), Json.tree(call.args.get("data")), groups(call));
      return Promise.resolve();
    }).thenApply(done -> null));
    kit.op("mol.listen", Adapter::listen);
    kit.op("mol.ping", Adapter::ping);
    kit.op("mol.registry", Adapter::registry);
    kit.run();
  }

  private static Session session(Call call) {
    Session found = sessions.get(call.text("session"));
    if (found == null) {
      throw new Failure("closed", "no session " + call.text("session")).surely();
    }
    return found;
  }

  private static Groups groups(Call call) {
    List<String> names = call.texts("groups");
    return names.isEmpty() ? null : Groups.of(names.toArray(new String[0]));
  }

  /** Hands something over in the order of the lines: where a message cannot be written, the library blocks. */
  private static CompletionStage<Tree> inTurn(Call call, Function<ServiceBroker, Promise> work) {
    Session session = session(call);
    return CompletableFuture.supplyAsync(() -> work.apply(session.broker), session.turns)
        .thenCompose(Adapter::finished);
  }

  private static Object connect(Call call) throws Exception {
    JsonObject options = call.object("options");
    JsonElement node = Call.member(options, "node_id");
    var config = new ServiceBrokerConfig(node == null ? null : node.getAsString(), null, transporter(call, options));
    JsonElement namespace = Call.member(options, "namespace");
    if (namespace != null) {
      config.setNamespace(namespace.getAsString());
    }
    JsonElement listen = Call.member(options, "listen");
    Session session = new Session(call.text("session"), new ServiceBroker(config),
        listen == null || listen.getAsBoolean());
    watch(session, "connected", true);
    watch(session, "disconnected", false);
    sessions.put(session.name, session);
    session.broker.start();
    return null;
  }

  /** As a service of the node's own: what begins with a dollar is not counted among those that it offers. */
  private static void watch(Session session, String what, boolean connected) throws ReflectiveOperationException {
    Made watcher = Made.listening("$transporter." + what, null, ctx -> session.changed(connected));
    session.broker.createService("$watch-" + what, watcher);
  }

  private static Transporter transporter(Call call, JsonObject options) {
    for (String name : List.of("request_timeout_ms", "disable_balancer")) {
      if (options.has(name)) {
        throw new Failure("unsupported", "the library has no " + name);
      }
    }
    JsonElement url = Call.member(options, "transporter");
    List<String> urls = url == null ? call.endpoints() : List.of(url.getAsString().split(","));
    var transporter = new Linked(urls.toArray(new String[0]));
    JsonElement beat = Call.member(options, "heartbeat_s");
    JsonElement dead = Call.member(options, "heartbeat_timeout_s");
    if (beat != null) {
      transporter.setHeartbeatInterval(beat.getAsInt());
    }
    if (dead != null) {
      transporter.setHeartbeatTimeout(dead.getAsInt());
    }
    return transporter;
  }

  private static Object state(Call call) {
    Session found = sessions.get(call.text("session"));
    Map<String, Object> state = new LinkedHashMap<>();
    state.put("open", found != null && !found.closing && found.transporter().isOpen());
    state.put("pending", null);
    return state;
  }

  private static Object close(Call call) throws Exception {
    Session session = session(call);
    session.closing = true;
    session.handOver();
    session.broker.stop();
    sessions.remove(session.name, session);
    return null;
  }

  private static Object serve(Call call) throws Exception {
    Session session = session(call);
    String service = call.text("service");
    Map<String, Action> actions = new LinkedHashMap<>();
    long stopMs = 0;
    for (var each : call.object("actions").entrySet()) {
      actions.put(each.getKey(), told(session, service + "." + each.getKey(), Behaviour.of(each.getValue())));
      stopMs = Behaviour.isSlow(each.getValue()) ? Behaviour.SLOW_STOP_MS : stopMs;
    }
    Long startMs = call.integer("start_delay_ms");
    session.broker.createService(service, Made.serving(actions).slow(startMs == null ? 0 : startMs, stopMs));
    return finished(session.broker.waitForServices(service)).thenApply(ready -> null);
  }

  /** The action, with a note as it begins and one as it ends. */
  private static Action told(Session session, String name, Action action) {
    return ctx -> {
      note(session, "action", ctx, Map.of("action", name, "from", ctx.nodeID));
      CompletionStage<?> ends;
      try {
        kit.trip("message");
        ends = finished(Promise.resolve(action.handler(ctx)));
      } catch (Exception error) {
        ends = CompletableFuture.failedFuture(error);
      }
      return ends.whenComplete((found, error) -> note(session, "ended", ctx, Map.of("ok", error == null)))
          .toCompletableFuture();
    };
  }

  private static void note(Session session, String what, Context ctx, Map<String, ?> more) {
    Map<String, Object> fields = new LinkedHashMap<>(more);
    fields.put("what", what);
    fields.put("session", session.name);
    fields.put("request", ctx.id);
    kit.emit("note", fields);
  }

  private static CompletionStage<Tree> finished(Promise promise) {
    return promise.toCompletableFuture();
  }

  private static Object call(Call call) {
    if (call.args.has("stream") || call.args.has("objects")) {
      throw new Failure("unsupported", "streams");
    }
    CallOptions.Options given = null;
    Long timeout = call.integer("timeout_ms");
    String node = call.text("node", null);
    if (timeout != null) {
      given = CallOptions.timeout(timeout);
    }
    if (node != null) {
      given = given == null ? CallOptions.nodeID(node) : given.nodeID(node);
    }
    CallOptions.Options options = given;
    Tree params = Json.params(call.args.get("params"), Call.member(call.args, "meta"));
    return inTurn(call, broker -> broker.call(call.text("action"), params, options)).thenApply(found -> {
      Map<String, Object> result = new LinkedHashMap<>();
      result.put("data", Json.shown(found));
      result.put("meta", Json.meta(found));
      return result; // who has answered is not told
    });
  }

  private static Object listen(Call call) throws Exception {
    Session session = session(call);
    String event = call.text("event");
    if (!call.args.has("sub")) {
      call.args.addProperty("sub", event);
    }
    Subscription subscription = kit.subscribed(call);
    Made service = Made.listening(event, call.text("group", null), ctx -> {
      Map<String, Object> meta = new LinkedHashMap<>();
      meta.put("event", ctx.name);
      meta.put("groups", null);
      meta.put("from", ctx.nodeID);
      subscription.deliver(Json.bytes(ctx.params), Map.of("target", event, "meta", meta));
    });
    session.broker.createService("listener-" + listeners.incrementAndGet(), service);
    return null;
  }

  private static Object ping(Call call) {
    Session session = session(call);
    String node = call.text("node", null);
    if (node == null) {
      throw new Failure("unsupported", "a ping is for one node");
    }
    long timeout = call.timeoutMs == null ? 0 : call.timeoutMs.longValue();
    long begun = System.nanoTime();
    return finished(session.broker.ping(timeout, node)).thenApply(pong -> {
      Map<String, Object> result = new LinkedHashMap<>();
      result.put("arrived", pong.get("arrived", 0L));
      result.put("rtt_ms", (System.nanoTime() - begun) / 1e6);
      result.put("from", pong.get("sender", (String) null));
      return result;
    });
  }

  private static Object registry(Call call) {
    Session session = session(call);
    List<Map<String, Object>> nodes = new ArrayList<>();
    Transporter transporter = session.transporter();
    for (String id : transporter.getAllNodeIDs()) {
      Tree described = transporter.getDescriptor(id);
      Tree services = described == null ? null : described.get("services");
      List<String> names = new ArrayList<>();
      if (services != null) {
        services.forEach(each -> names.add(each.get("name", "")));
      }
      nodes.add(Map.of("id", id, "available", transporter.isOnline(id), "services", names));
    }
    return Map.of("nodes", nodes);
  }

  private static void clear() {
    List<Session> left = new ArrayList<>(sessions.values());
    sessions.clear();
    for (Session session : left) {
      session.closing = true;
      session.broker.stop();
    }
  }

  /** The library's errors; whatever else a node has said keeps its code and type. */
  private static Failure classify(Throwable error) {
    if (error instanceof MoleculerError known) {
      String kind = error instanceof RequestTimeoutError ? "timeout"
          : error instanceof RequestRejectedError ? "connection" : "refused";
      return new Failure(kind, error.getMessage(), known.getCode()).type(known.getType());
    }
    return Failure.classify(error);
  }
}
