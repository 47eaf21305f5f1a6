import com.google.gson.JsonElement;
import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.Resource;
import com.rabbitmq.stream.Resource.State;
import fakebrokers.kit.Call;
import fakebrokers.kit.Failure;
import fakebrokers.kit.Kit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** One Environment and its publishers. */
final class Session {
  final Environment environment;
  volatile boolean isClosed;

  private final String name;
  private final boolean listens;
  private final Map<List<String>, Publisher> publishers = new ConcurrentHashMap<>();

  Session(String name, Environment environment, boolean listens) {
    this.name = name;
    this.environment = environment;
    this.listens = listens;
  }

  private static List<String> key(Call call) {
    JsonElement by = call.object("routing").get("by");
    return List.of(call.text("target"), call.text("name", ""), call.text("subentry", ""),
        by == null ? "" : by.getAsString(), Boolean.toString(isFiltered(call)));
  }

  private static boolean isFiltered(Call call) {
    JsonElement wanted = Call.member(call.args, "filtered");
    return wanted != null && wanted.getAsBoolean();
  }

  /** The publisher for a target, a name and a kind of batch; it declares itself with its first message. */
  Publisher publisher(Call call, Kit kit, int batch) {
    if (isClosed) {
      throw new Failure("closed", "the session is closed").surely();
    }
    return publishers.computeIfAbsent(key(call), key -> new Publisher(kit, routes -> {
      var builder = environment.producerBuilder()
          .confirmTimeout(Publisher.CONFIRM_TIMEOUT)
          .listeners(listener(kit, key.get(0)));
      if (key.get(3).isEmpty()) {
        builder.stream(key.get(0));
      } else {
        var routing = builder.superStream(key.get(0)).routing(routes);
        (key.get(3).equals("key") ? routing.key() : routing.hash()).producerBuilder();
      }
      if (Boolean.parseBoolean(key.get(4))) {
        builder.filterValue(message -> Filters.valueOf(message.getBodyAsBinary()));
      }
      if (!key.get(1).isEmpty()) {
        builder.name(key.get(1));
      }
      if (!key.get(2).isEmpty()) {
        builder.subEntrySize(Math.max(batch, 2)).compression(Publisher.compression(key.get(2)));
      }
      return builder.build();
    }));
  }

  /** The publisher, which the next op declares anew. */
  Publisher forget(Call call) {
    Publisher found = publishers.remove(key(call));
    if (found == null) {
      throw new Failure("closed", "no publisher for " + call.text("target")).surely();
    }
    return found;
  }

  /** Passes on what the library tells about a producer or a consumer, unless the script asked for it. */
  Resource.StateListener listener(Kit kit, String target) {
    return context -> {
      String what = what(context.previousState(), context.currentState());
      if (what == null || isClosed || !listens) {
        return;
      }
      Map<String, Object> event = new LinkedHashMap<>();
      event.put("session", name);
      event.put("what", what);
      event.put("text", context.previousState() + " -> " + context.currentState());
      event.put("targets", List.of(target));
      kit.emit("session", event);
      kit.trip("session");
    };
  }

  private static String what(State before, State now) {
    if (now == State.RECOVERING) {
      return "connection_lost";
    }
    if (before == State.RECOVERING && now == State.OPEN) {
      return "reconnected";
    }
    return before == State.RECOVERING && now == State.CLOSED ? "target_closed" : null;
  }

  void close() {
    isClosed = true;
    environment.close();
    publishers.values().forEach(Publisher::closed);
  }
}
