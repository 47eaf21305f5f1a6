import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.rabbitmq.stream.ConsumerBuilder;
import fakebrokers.kit.Call;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Filter values of messages: their text up to the first colon. */
final class Filters {
  private Filters() {}

  /** The value of a body; null: it has none. */
  static String valueOf(byte[] body) {
    String text = new String(body, StandardCharsets.UTF_8);
    int end = text.indexOf(':');
    return end < 0 ? null : text.substring(0, end);
  }

  /** Lets a consumer get only what is wanted, with the predicate that the library asks of its users. */
  static void apply(ConsumerBuilder builder, JsonObject wanted) {
    List<String> values = wanted.getAsJsonArray("values").asList().stream().map(JsonElement::getAsString).toList();
    JsonElement unfiltered = Call.member(wanted, "unfiltered");
    boolean others = unfiltered != null && unfiltered.getAsBoolean();
    builder.filter().values(values.toArray(String[]::new)).matchUnfiltered(others).postFilter(message -> {
      String value = valueOf(message.getBodyAsBinary());
      return value == null ? others : values.contains(value);
    }).builder();
  }
}
