import java.lang.invoke.MethodHandles;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.objectweb.asm.AnnotationVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.FieldVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import services.moleculer.ServiceBroker;
import services.moleculer.eventbus.Group;
import services.moleculer.eventbus.Listener;
import services.moleculer.eventbus.Subscribe;
import services.moleculer.service.Action;
import services.moleculer.service.Name;
import services.moleculer.service.Service;

/**
 * Services that are known at run time only. The library finds actions and listeners by the fields of a class, so each
 * service gets a class of its own.
 */
public class Made extends Service {
  private static final AtomicLong count = new AtomicLong();
  private long startMs;
  private long stopMs;

  /** How long it takes to start and to stop. */
  Made slow(long start, long stop) {
    startMs = start;
    stopMs = stop;
    return this;
  }

  @Override
  public void started(ServiceBroker broker) throws Exception {
    super.started(broker);
    Thread.sleep(startMs);
  }

  @Override
  public void stopped() {
    try {
      Thread.sleep(stopMs);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  static Made serving(Map<String, Action> actions) throws ReflectiveOperationException {
    Map<String, Class<?>> fields = new java.util.LinkedHashMap<>();
    Class<? extends Made> made = define(writer -> {
      for (String name : actions.keySet()) {
        String field = "action" + fields.size();
        fields.put(field, Action.class);
        annotate(writer, field, Action.class, Map.of(Name.class, name));
      }
    });
    Made service = made.getDeclaredConstructor().newInstance();
    int number = 0;
    for (Action action : actions.values()) {
      made.getField("action" + number++).set(service, action);
    }
    return service;
  }

  /** Listens to one event; the group is the service's name without one. */
  static Made listening(String event, String group, Listener listener) throws ReflectiveOperationException {
    Map<Class<?>, String> words = group == null ? Map.of(Subscribe.class, event)
        : Map.of(Subscribe.class, event, Group.class, group);
    Class<? extends Made> made = define(writer -> annotate(writer, "listener", Listener.class, words));
    Made service = made.getDeclaredConstructor().newInstance();
    made.getField("listener").set(service, listener);
    return service;
  }

  private static Class<? extends Made> define(java.util.function.Consumer<ClassWriter> fields)
      throws IllegalAccessException {
    ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
    writer.visit(Opcodes.V17, Opcodes.ACC_PUBLIC, "Made" + count.incrementAndGet(), null, "Made", null);
    MethodVisitor init = writer.visitMethod(Opcodes.ACC_PUBLIC, "<init>", "()V", null, null);
    init.visitVarInsn(Opcodes.ALOAD, 0);
    init.visitMethodInsn(Opcodes.INVOKESPECIAL, "Made", "<init>", "()V", false);
    init.visitInsn(Opcodes.RETURN);
    init.visitMaxs(0, 0);
    fields.accept(writer);
    return MethodHandles.lookup().defineClass(writer.toByteArray()).asSubclass(Made.class);
  }

  private static void annotate(ClassWriter writer, String field, Class<?> type, Map<Class<?>, String> words) {
    FieldVisitor visitor = writer.visitField(Opcodes.ACC_PUBLIC, field, Type.getDescriptor(type), null, null);
    words.forEach((kind, word) -> {
      AnnotationVisitor annotation = visitor.visitAnnotation(Type.getDescriptor(kind), true);
      annotation.visit("value", word);
      annotation.visitEnd();
    });
    visitor.visitEnd();
  }
}
