package fakebrokers.kit;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What hello says about the adapter and its library; fill in the fields. ADAPTER.md explains each. */
public final class Facts {
  public String adapter = "";
  public String library = "";

  /** See {@link #versionOf}. */
  public String library_version = "";

  public List<String> protocols = List.of();
  public List<String> roles = List.of();

  /** Capabilities: true, or what ADAPTER.md says. */
  public Map<String, Object> caps = new LinkedHashMap<>();

  /** Time-outs that do not follow {@code timeout_ms}, and other bounds. */
  public Map<String, Object> limits = new LinkedHashMap<>();

  /** What the library may do besides; see ADAPTER.md. */
  public Map<String, Boolean> contract = new LinkedHashMap<>();

  /** "auto", "manual" or "none". */
  public String settles = "none";

  /** "per_scenario" where the library leaves threads that nobody can end. */
  public String restart = "never";

  /** How a body becomes a record, such as "raw" or "amqp". */
  public List<String> formats = List.of();

  /** The kinds of callback that call {@link Kit#trip}; not part of hello. */
  public transient List<String> callbacks = List.of("message");

  /** The version of a library, from the manifest of its jar; "unknown" where that does not tell. */
  public static String versionOf(Class<?> one) {
    String version = one.getPackage().getImplementationVersion();
    return version == null ? "unknown" : version;
  }
}
