import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * An operator in Java without a library: for each Database it creates a headless Service, a PodDisruptionBudget and a
 * StatefulSet, and its status says whether all of them are ready. `java Database.java URL NAMESPACE`
 */
public class Database {
  static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  static final String META = "\"metadata\": {\"name\": \"NAME\", \"labels\": {\"database\": \"NAME\"}, \"ownerReferences\": ["
      + "{\"apiVersion\": \"example.com/v1\", \"kind\": \"Database\", \"name\": \"NAME\", \"uid\": \"UID\", \"controller\": true}]}";
  static final String SELECTOR = "\"selector\": {\"matchLabels\": {\"database\": \"NAME\"}}";
  static final Map<String, String> OWNED = Map.of(
      "/api/v1/namespaces/%s/services", "{" + META + ", \"spec\": {\"clusterIP\": \"None\", \"selector\": {\"database\": \"NAME\"},"
          + "\"ports\": [{\"name\": \"sql\", \"port\": 5432}]}}",
      "/apis/policy/v1/namespaces/%s/poddisruptionbudgets", "{" + META + ", \"spec\": {\"minAvailable\": LEAST, " + SELECTOR + "}}",
      "/apis/apps/v1/namespaces/%s/statefulsets", "{" + META + ", \"spec\": {\"replicas\": REPLICAS, \"serviceName\": \"NAME\", "
          + SELECTOR + ", \"template\": {\"metadata\": {\"labels\": {\"database\": \"NAME\"}}, \"spec\": {\"containers\": [{"
          + "\"name\": \"db\", \"image\": \"postgres\", \"volumeMounts\": [{\"name\": \"data\", \"mountPath\": \"/data\"}]}]}},"
          + "\"volumeClaimTemplates\": [{\"metadata\": {\"name\": \"data\"}, \"spec\": {\"accessModes\": [\"ReadWriteOnce\"],"
          + "\"resources\": {\"requests\": {\"storage\": \"1Gi\"}}}}]}}");
  static final String SLICES = "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices";
  static final String DATABASES = "/apis/example.com/v1/namespaces/%s/databases";

  static String url;
  static String namespace;

  public static void main(String[] arguments) {
    url = arguments[0];
    namespace = arguments[1];
    new Thread(() -> watch(DATABASES, "")).start();
    OWNED.keySet().forEach(path -> new Thread(() -> watch(path, "&labelSelector=database")).start());
    new Thread(() -> watch(SLICES, "&labelSelector=database")).start();
  }

  /** Reconciles the Database that a watch is about: that of a label, or the object itself. */
  static void watch(String path, String selector) {
    try {
      var request = HttpRequest.newBuilder(URI.create(url + path.formatted(namespace) + "?watch=1" + selector)).build();
      CLIENT.send(request, BodyHandlers.ofLines()).body().forEach(line ->
          reconcile(found(line, selector.isEmpty() ? "\"metadata\":\\{.*?\"name\":\"([^\"]+)\"" : "\"database\":\"([^\"]+)\"")));
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  static synchronized void reconcile(String name) {
    var database = get(DATABASES, "/" + name);
    if (database.contains("\"status\":\"Failure\"") || database.contains("\"deletionTimestamp\":")) return;
    var replicas = Integer.parseInt(found(database, "\"replicas\":(\\d+)"));
    OWNED.forEach((path, text) -> send("POST", path, "", text.replace("NAME", name).replace("REPLICAS", "" + replicas)
        .replace("LEAST", "" + (replicas - 1)).replace("UID", found(database, "\"uid\":\"([^\"]+)\""))));
    var set = get("/apis/apps/v1/namespaces/%s/statefulsets", "/" + name);
    var budget = get("/apis/policy/v1/namespaces/%s/poddisruptionbudgets", "/" + name);
    var reachable = Pattern.compile("\"ready\":true").matcher(get(SLICES, "?labelSelector=database=" + name)).results().count();
    var ready = set.contains("\"readyReplicas\":" + replicas) && budget.contains("\"disruptionsAllowed\":1") && reachable == replicas;
    send("PATCH", DATABASES, "/" + name + "/status", "{\"status\": {\"ready\": " + ready + "}}");
  }

  static String found(String text, String pattern) {
    var matcher = Pattern.compile(pattern).matcher(text);
    if (!matcher.find()) throw new IllegalArgumentException(pattern + " is not in " + text);
    return matcher.group(1);
  }

  static String get(String path, String rest) {
    return send("GET", path, rest, "");
  }

  static String send(String method, String path, String rest, String body) {
    var type = method.equals("PATCH") ? "application/merge-patch+json" : "application/json";
    var request = HttpRequest.newBuilder(URI.create(url + path.formatted(namespace) + rest)).header("Content-Type", type);
    try {
      return CLIENT.send(request.method(method, BodyPublishers.ofString(body)).build(), BodyHandlers.ofString()).body();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
