import com.google.gson.JsonObject;
import com.rabbitmq.stream.ConfirmationStatus;
import com.rabbitmq.stream.Constants;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.MessageBuilder;
import com.rabbitmq.stream.Producer;
import com.rabbitmq.stream.compression.Compression;
import fakebrokers.kit.Failure;
import fakebrokers.kit.Kit;
import java.time.Duration;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;

/** A Producer with a thread of its own, which hands it messages in line order. */
final class Publisher {
  static final Duration CONFIRM_TIMEOUT = Duration.ofSeconds(10);

  private final Kit kit;
  private final Declaration declare;
  private final ExecutorService turns = Executors.newSingleThreadExecutor(work -> {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    return thread;
  });
  private final Set<CompletableFuture<Outcome>> open = ConcurrentHashMap.newKeySet();
  private final Map<Message, String> routes = Collections.synchronizedMap(new IdentityHashMap<>());
  private Producer producer; // null until it is declared, in a turn

  Publisher(Kit kit, Declaration declare) {
    this.kit = kit;
    this.declare = declare;
  }

  static Compression compression(String word) {
    return word.equals("gzip") ? Compression.GZIP : Compression.NONE;
  }

  /** Makes a Producer, which may ask for the routing keys of messages. */
  interface Declaration {
    Producer with(Function<Message, String> routes) throws Exception;
  }

  /** Something to do with a Producer. */
  interface Work<T> {
    T with(Producer producer) throws Exception;
  }

  /** Does something in its turn; the Producer is declared where there is none. */
  <T> CompletableFuture<T> then(Work<T> work) {
    CompletableFuture<T> end = new CompletableFuture<>();
    turns.execute(() -> {
      try {
        if (producer == null) {
          producer = declare.with(routes::get);
        }
        end.complete(work.with(producer));
      } catch (Exception error) {
        end.completeExceptionally(error);
      }
    });
    return end;
  }

  /** Sends one message; the future ends with its outcome. */
  CompletableFuture<Outcome> send(byte[] body, Long key, JsonObject headers, String route) {
    CompletableFuture<Outcome> end = new CompletableFuture<>();
    open.add(end);
    end.whenComplete((outcome, error) -> open.remove(end));
    then(to -> {
      MessageBuilder builder = to.messageBuilder().addData(body);
      if (key != null) {
        builder.publishingId(key);
      }
      if (headers.size() > 0) {
        var properties = builder.applicationProperties();
        headers.entrySet().forEach(each -> properties.entry(each.getKey(), each.getValue().getAsString()));
      }
      Message message = builder.build();
      if (route != null) {
        routes.put(message, route);
      }
      to.send(message, status -> {
        routes.remove(message);
        end.complete(new Outcome(status));
        kit.trip("confirm");
      });
      return null;
    }).exceptionally(error -> {
      end.completeExceptionally(error);
      return null;
    });
    return end;
  }

  /** The session was closed: nobody waits any longer for what the library has not told. */
  void closed() {
    open.forEach(end -> end.complete(new Outcome(null)));
  }

  /** What became of a message; null: the library has not told. */
  record Outcome(ConfirmationStatus status) {
    Long key() {
      var message = status == null ? null : status.getMessage();
      return message != null && message.hasPublishingId() ? message.getPublishingId() : null;
    }

    private boolean isConfirmed() {
      return status != null && status.isConfirmed();
    }

    /** Whether nobody knows: the library does not tell, or tells a code of its own. */
    private boolean isOpen() {
      return status == null || status.getCode() >= Constants.CODE_MESSAGE_ENQUEUEING_FAILED;
    }

    Map<String, Object> report() {
      Map<String, Object> fields = new LinkedHashMap<>();
      fields.put("outcome", isConfirmed() ? "acked" : isOpen() ? "unknown" : "nacked");
      fields.put("key", key());
      fields.put("code", isConfirmed() || isOpen() ? null : (int) status.getCode());
      return fields;
    }

    /** Throws why a message was not acknowledged. */
    void raise() {
      if (isConfirmed()) {
        return;
      }
      if (status == null) {
        throw new Failure("closed", "the session was closed before the confirm");
      }
      String text = "not confirmed, code " + status.getCode();
      throw switch (status.getCode()) {
        case Constants.CODE_PUBLISH_CONFIRM_TIMEOUT -> new Failure("timeout", text);
        // not sent: the queue of the Producer was full, or it has no connection
        case Constants.CODE_MESSAGE_ENQUEUEING_FAILED -> new Failure("timeout", text).surely();
        case Constants.CODE_PRODUCER_NOT_AVAILABLE -> new Failure("connection", text);
        case Constants.CODE_NO_ROUTE_FOUND -> new Failure("invalid", text).surely();
        case Constants.CODE_PRODUCER_CLOSED -> new Failure("closed", text);
        default -> new Failure("refused", text, (int) status.getCode());
      };
    }
  }
}
