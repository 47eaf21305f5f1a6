import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import fakebrokers.kit.Call;
import fakebrokers.kit.Failure;
import io.datatree.Tree;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import services.moleculer.error.MoleculerError;
import services.moleculer.service.Action;

/** What the actions of a served service do ({@code mol.serve}). */
final class Behaviour {
  static final long SLOW_STOP_MS = 1500;

  private Behaviour() {}

  static boolean isSlow(JsonElement behaviour) {
    return behaviour.isJsonObject() && "slow_stop".equals(special(behaviour.getAsJsonObject()));
  }

  private static String special(JsonObject behaviour) {
    JsonElement found = Call.member(behaviour, "special");
    return found == null ? "" : found.getAsString();
  }

  static Action of(JsonElement behaviour) {
    if (behaviour.isJsonPrimitive()) {
      return ctx -> ctx.params;
    }
    JsonObject wanted = behaviour.getAsJsonObject();
    if (wanted.has("return")) {
      return ctx -> Json.tree(wanted.get("return"));
    }
    if (wanted.has("throw")) {
      return ctx -> {
        throw thrown(wanted.getAsJsonObject("throw"));
      };
    }
    if (wanted.has("sleep_ms")) {
      var later = CompletableFuture.delayedExecutor(wanted.get("sleep_ms").getAsLong(), TimeUnit.MILLISECONDS);
      return ctx -> CompletableFuture.supplyAsync(() -> "slept", later);
    }
    return switch (special(wanted)) {
      case "slow_stop" -> ctx -> ctx.params;
      case "nested_call" -> ctx -> {
        Tree params = ctx.params.get("params");
        return ctx.call(ctx.params.get("action", ""), params == null ? null : params.clone());
      };
      default -> throw new Failure("unsupported", "no behaviour " + wanted);
    };
  }

  private static Exception thrown(JsonObject error) {
    JsonElement message = Call.member(error, "message");
    String text = message == null ? "" : message.getAsString();
    JsonElement plain = Call.member(error, "plain");
    if (plain != null && plain.getAsBoolean()) {
      return new IllegalStateException(text);
    }
    JsonElement code = Call.member(error, "code");
    JsonElement type = Call.member(error, "type");
    return new MoleculerError(text, null, false, code == null ? 500 : code.getAsInt(),
        type == null ? null : type.getAsString(), Json.tree(error.get("data")));
  }
}
