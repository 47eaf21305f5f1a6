import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import io.datatree.Tree;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import services.moleculer.util.CheckedTree;

/** Values of JSON, as the lines have them and as the library has them. */
final class Json {
  private static final Gson GSON = new GsonBuilder().serializeNulls().create();

  private Json() {}

  /** Maps, lists, texts, flags, and numbers that are whole where the text is. */
  static Object plain(JsonElement value) {
    if (value == null || value.isJsonNull()) {
      return null;
    }
    if (value instanceof JsonObject object) {
      Map<String, Object> found = new LinkedHashMap<>();
      object.entrySet().forEach(each -> found.put(each.getKey(), plain(each.getValue())));
      return found;
    }
    if (value instanceof JsonArray array) {
      List<Object> found = new ArrayList<>();
      array.forEach(each -> found.add(plain(each)));
      return found;
    }
    JsonPrimitive single = value.getAsJsonPrimitive();
    if (single.isBoolean()) {
      return single.getAsBoolean();
    }
    if (single.isNumber()) {
      return single.getAsString().matches("-?\\d{1,18}") ? (Object) single.getAsLong() : single.getAsDouble();
    }
    return single.getAsString();
  }

  /** What an event or an answer holds; null for nothing. */
  static Tree tree(JsonElement value) {
    return value == null ? null : new CheckedTree(plain(value));
  }

  /** What an action is called with; without parameters an empty map, as the library has it. */
  static Tree params(JsonElement value, JsonElement meta) {
    Object given = value == null ? new LinkedHashMap<>() : plain(value);
    return meta == null ? new CheckedTree(given) : new CheckedTree(given, plain(meta));
  }

  static JsonElement shown(Tree tree) {
    return tree == null ? JsonNull.INSTANCE : GSON.toJsonTree(tree.asObject());
  }

  /** Nothing where what came as meta is no map. */
  static JsonElement meta(Tree tree) {
    Tree found = tree == null ? null : tree.getMeta(false);
    return found != null && found.isMap() ? shown(found) : new JsonObject();
  }

  static byte[] bytes(Tree tree) {
    return GSON.toJson(shown(tree)).getBytes(java.nio.charset.StandardCharsets.UTF_8);
  }
}
