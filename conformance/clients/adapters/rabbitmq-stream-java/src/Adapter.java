import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.rabbitmq.stream.BackOffDelayPolicy;
import com.rabbitmq.stream.ByteCapacity;
import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.ConsumerBuilder;
import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.EnvironmentBuilder;
import com.rabbitmq.stream.NoOffsetException;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.StreamCreator;
import com.rabbitmq.stream.StreamStats;
import com.rabbitmq.stream.sasl.DefaultSaslConfiguration;
import fakebrokers.kit.Body;
import fakebrokers.kit.Call;
import fakebrokers.kit.Facts;
import fakebrokers.kit.Failure;
import fakebrokers.kit.Kit;
import fakebrokers.kit.Subscription;
import io.netty.handler.ssl.SslContextBuilder;
import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * com.rabbitmq:stream-client (https://github.com/rabbitmq/rabbitmq-stream-java-client) behind the adapter protocol.
 *
 * <p>A session is one Environment, with a Producer for each target and name. The library reconnects everything by
 * itself.
 */
public final class Adapter {
  /** The library's default is 5 s; runs are quicker with less. */
  private static final Duration BACK_OFF = Duration.ofSeconds(1);
  private static final long RESET_MS = 500;

  private static final Map<String, Session> sessions = new ConcurrentHashMap<>();
  private static final Kit kit = new Kit(facts());

  private Adapter() {}

  private static Facts facts() {
    Facts facts = new Facts();
    facts.adapter = "rabbitmq-stream-java";
    facts.library = "com.rabbitmq:stream-client";
    facts.library_version = Facts.versionOf(Environment.class);
    facts.protocols = List.of("rabbitmq-stream");
    facts.roles = List.of("publisher", "consumer", "admin");
    facts.formats = List.of("amqp");
    facts.restart = "per_scenario"; // an Environment that lost its broker goes on to look for it while it closes
    facts.callbacks = List.of("message", "confirm", "session");
    for (String cap : new String[] {"ack_timeout", "auto_reconnect", "callback_raise", "callback_sleep", "crc",
        "endpoints", "filters", "named_publisher", "offset_without_consumer", "properties", "reentrant", "sac", "subentry",
        "super_streams", "tls", "tracking"}) {
      facts.caps.put(cap, true);
    }
    // Connecting takes a second more when it fails: build() waits for its event loop to be shut down.
    // The time-out of requests belongs to the Environment and is left as it is. A task that runs every 10 s looks
    // for overdue confirms, so a message is told 10 to 20 s after it was sent. Closing waits as long as a request
    // for each connection, one after the other: of the producers, of the consumers, and the locator.
    facts.limits.putAll(Map.of("connect_timeout_ms", 11_000, "request_timeout_ms", 10_000,
        "publish_timeout_ms", 20_000, "close_timeout_ms", 30_000, "heartbeat_min_s", 1));
    return facts;
  }

  public static void main(String[] args) {
    kit.classify = Errors::classify;
    kit.clear = Adapter::clear;
    kit.op("connect", Adapter::connect);
    kit.op("state", Adapter::state);
    kit.op("close", Adapter::close);
    kit.ordered("publish", Adapter::publish);
    kit.ordered("publish_many", Adapter::publishMany);
    kit.op("subscribe", Adapter::subscribe);
    kit.op("unsubscribe", Adapter::unsubscribe);
    kit.op("rmqs.create", Adapter::create);
    kit.op("rmqs.delete", call -> {
      session(call).environment.deleteStream(call.text("target"));
      return null;
    });
    kit.op("rmqs.create_super_stream", Adapter::create);
    kit.op("rmqs.delete_super_stream", call -> {
      session(call).environment.deleteSuperStream(call.text("target"));
      return null;
    });
    kit.op("rmqs.stream_stats", Adapter::streamStats);
    kit.op("rmqs.metadata", Adapter::metadata);
    kit.op("rmqs.store_offset", call -> {
      session(call).environment.storeOffset(call.text("name"), call.text("target"), call.integer("offset"));
      return null;
    });
    kit.ordered("rmqs.declare_publisher",
        call -> session(call).publisher(call, kit, 0).then(producer -> null));
    kit.ordered("rmqs.delete_publisher", call -> session(call).forget(call).then(producer -> {
      producer.close();
      return null;
    }));
    kit.run();
  }

  private static Session session(Call call) {
    Session found = sessions.get(call.text("session"));
    if (found == null) {
      throw new Failure("closed", "no session " + call.text("session")).surely();
    }
    return found;
  }

  private static Object connect(Call call) throws Exception {
    JsonObject options = call.object("options");
    EnvironmentBuilder builder = Environment.builder()
        .uris(call.endpoints().stream().map(endpoint -> "rabbitmq-stream://" + endpoint).toList())
        .username(text(options, "user", "guest"))
        .password(text(options, "password", "guest"))
        .virtualHost(text(options, "vhost", "/"))
        .recoveryBackOffDelayPolicy(BackOffDelayPolicy.fixed(BACK_OFF))
        .topologyUpdateBackOffDelayPolicy(BackOffDelayPolicy.fixed(BACK_OFF));
    if (options.has("frame_max")) {
      builder.requestedMaxFrameSize(options.get("frame_max").getAsInt());
    }
    if (options.has("heartbeat_s")) {
      builder.requestedHeartbeat(Duration.ofMillis((long) (options.get("heartbeat_s").getAsDouble() * 1000)));
    }
    if (options.has("mechanism")) {
      builder.saslConfiguration(new DefaultSaslConfiguration(options.get("mechanism").getAsString()));
    }
    if (options.has("tls")) {
      trust(builder, options.getAsJsonObject("tls"));
    }
    boolean listens = !options.has("listen") || options.get("listen").getAsBoolean();
    sessions.put(call.text("session"), new Session(call.text("session"), builder.build(), listens));
    return null;
  }

  private static void trust(EnvironmentBuilder builder, JsonObject tls) throws Exception {
    SslContextBuilder context = SslContextBuilder.forClient();
    if (tls.has("ca_file")) {
      context.trustManager(new File(tls.get("ca_file").getAsString()));
    }
    builder.tls().sslContext(context.build());
  }

  private static String text(JsonObject options, String name, String otherwise) {
    JsonElement found = Call.member(options, name);
    return found == null ? otherwise : found.getAsString();
  }

  private static Object state(Call call) {
    Session found = sessions.get(call.text("session"));
    Map<String, Object> state = new LinkedHashMap<>();
    state.put("open", found != null && !found.isClosed);
    state.put("pending", null);
    return state;
  }

  private static Object close(Call call) {
    session(call).close();
    return null;
  }

  /** Closing waits for answers of a broker that may be gone, so it goes on behind a reset. */
  private static void clear() {
    CompletableFuture<?>[] closing = sessions.values().stream().map(session -> {
      session.isClosed = true;
      return CompletableFuture.runAsync(session::close, work -> {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
      });
    }).toArray(CompletableFuture[]::new);
    sessions.clear();
    CompletableFuture.allOf(closing).exceptionally(error -> null)
        .completeOnTimeout(null, RESET_MS, TimeUnit.MILLISECONDS).join();
  }

  private static Object publish(Call call) {
    CompletableFuture<Publisher.Outcome> outcome = session(call).publisher(call, kit, 0)
        .send(call.body(), call.integer("key"), call.object("headers"), text(call.object("routing"), "key", null));
    if (!call.waits()) {
      outcome.thenAccept(end -> tell(call, end));
      return report("sent", null);
    }
    return outcome.thenApply(end -> {
      end.raise();
      return report("acked", end.key());
    });
  }

  private static Map<String, Object> report(String word, Long key) {
    Map<String, Object> report = new LinkedHashMap<>();
    report.put("outcome", word);
    report.put("key", key);
    report.put("meta", Map.of());
    return report;
  }

  private static Object publishMany(Call call) {
    JsonArray messages = call.args.getAsJsonArray("messages");
    Publisher publisher = session(call).publisher(call, kit, messages.size());
    List<CompletableFuture<Map<String, Object>>> ends = new ArrayList<>();
    for (JsonElement each : messages) {
      JsonObject item = each.getAsJsonObject();
      JsonElement key = Call.member(item, "key");
      JsonObject headers = item.has("headers") ? item.getAsJsonObject("headers") : new JsonObject();
      ends.add(publisher
          .send(Body.bytes(item.get("body")), key == null ? null : key.getAsLong(), headers, null)
          .thenApply(end -> tell(call, end)));
    }
    if (!call.waits()) {
      return Map.of("outcomes", ends.stream().map(end -> report("sent", null)).toList());
    }
    return CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new))
        .thenApply(all -> Map.of("outcomes", ends.stream().map(CompletableFuture::join).toList()));
  }

  /** Writes the event for one message; returns what it says. */
  private static Map<String, Object> tell(Call call, Publisher.Outcome end) {
    Map<String, Object> fields = end.report();
    Map<String, Object> event = new LinkedHashMap<>(fields);
    event.put("id", call.id);
    kit.emit("outcome", event);
    return fields;
  }

  private static Object subscribe(Call call) {
    Session session = session(call);
    JsonObject options = call.object("options");
    Subscription subscription = kit.subscribed(call);
    OffsetSpecification start = offset(options);
    boolean isSuper = options.has("super_stream") && options.get("super_stream").getAsBoolean();
    ConsumerBuilder builder = session.environment.consumerBuilder()
        .offset(start)
        .listeners(session.listener(kit, call.text("target")))
        .messageHandler((context, message) -> subscription.deliver(message.getBodyAsBinary(), Map.of(
            "position", Long.toString(context.offset()),
            "ts", context.timestamp(),
            "headers", headers(message.getApplicationProperties()),
            "meta", isSuper ? Map.of("partition", context.stream()) : Map.of())));
    if (isSuper) {
      builder.superStream(call.text("target"));
    } else {
      builder.stream(call.text("target"));
    }
    if (options.has("filter")) {
      Filters.apply(builder, options.getAsJsonObject("filter"));
    }
    JsonObject properties = options.has("properties") ? options.getAsJsonObject("properties") : new JsonObject();
    String name = text(options, "name", text(properties, "name", null));
    if (name != null) {
      track(builder.name(name), options);
    }
    if ("true".equals(text(properties, "single-active-consumer", ""))) {
      builder.singleActiveConsumer().consumerUpdateListener(context -> start);
    }
    if (options.has("credit")) {
      builder.flow().initialCredits(options.get("credit").getAsInt()).builder();
    }
    subscription.handle = builder.build();
    return null;
  }

  /** Without an order of the script the library's own checks are off: it stores what it is told to, and nothing else. */
  private static void track(ConsumerBuilder builder, JsonObject options) {
    JsonObject tracking = options.has("tracking") ? options.getAsJsonObject("tracking") : new JsonObject();
    switch (text(tracking, "by", "")) {
      case "library" -> {
        var strategy = builder.autoTrackingStrategy();
        if (tracking.has("every")) {
          strategy.messageCountBeforeStorage(tracking.get("every").getAsInt());
        }
      }
      case "application" -> builder.manualTrackingStrategy();
      default -> builder.manualTrackingStrategy().checkInterval(Duration.ZERO);
    }
  }

  private static Map<String, Object> headers(Map<String, Object> properties) {
    return properties == null ? Map.of() : properties;
  }

  private static OffsetSpecification offset(JsonObject options) {
    JsonObject given = options.has("offset") ? options.getAsJsonObject("offset") : new JsonObject();
    JsonElement value = Call.member(given, "value");
    return switch (text(given, "type", "first")) {
      case "last" -> OffsetSpecification.last();
      case "next" -> OffsetSpecification.next();
      case "offset" -> OffsetSpecification.offset(value.getAsLong());
      case "timestamp" -> OffsetSpecification.timestamp(value.getAsLong());
      default -> OffsetSpecification.first();
    };
  }

  private static Object unsubscribe(Call call) {
    if (kit.subscription(call.text("sub")).handle instanceof Consumer consumer) {
      consumer.close();
      return null;
    }
    throw new Failure("closed", "not subscribed").surely();
  }

  private static Object create(Call call) {
    StreamCreator creator = session(call).environment.streamCreator().name(call.text("target"));
    if (call.args.has("keys")) {
      creator.superStream().bindingKeys(call.texts("keys").toArray(String[]::new));
    } else if (call.args.has("partitions")) {
      creator.superStream().partitions(call.args.get("partitions").getAsInt());
    }
    for (var argument : call.object("arguments").entrySet()) {
      String value = argument.getValue().getAsString();
      switch (argument.getKey()) {
        case "max-length-bytes" -> creator.maxLengthBytes(ByteCapacity.B(Long.parseLong(value)));
        case "stream-max-segment-size-bytes" ->
            creator.maxSegmentSizeBytes(ByteCapacity.B(Long.parseLong(value)));
        default -> creator.argument(argument.getKey(), value);
      }
    }
    creator.create();
    return null;
  }

  private static Object streamStats(Call call) {
    StreamStats stats = session(call).environment.queryStreamStats(call.text("target"));
    Map<String, Object> numbers = new LinkedHashMap<>();
    numbers.put("first", orNull(stats::firstOffset));
    numbers.put("committed", orNull(stats::committedChunkId));
    return numbers;
  }

  private static Long orNull(LongSupplier number) {
    try {
      return number.getAsLong();
    } catch (NoOffsetException nothingYet) {
      return null;
    }
  }

  private static Object metadata(Call call) {
    List<Map<String, Object>> streams = new ArrayList<>();
    for (String name : call.texts("targets")) {
      streams.add(Map.of("name", name, "exists", session(call).environment.streamExists(name)));
    }
    return Map.of("streams", streams);
  }
}
