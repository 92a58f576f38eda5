import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka Streams: counts the wins of each pair, exactly once. The argument is a Job as JSON. */
public final class DuelCounts {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int EVERY = 100;
  private static final byte[] SEEN = new byte[0];

  @JsonIgnoreProperties(ignoreUnknown = true)
  record Duel(String id, String experiment, String a, String b, String winner) {
    String pair() {
      return winner.equals("a") ? a + ">" + b : b + ">" + a;
    }
  }

  record Result(String experiment, long records, Map<String, Long> wins) {}

  /** A partition has one experiment, so the keys of its stores need no experiment. */
  static final class Count implements Processor<String, byte[], String, byte[]> {
    private final ObjectReader duels = JSON.readerFor(Duel.class);
    private ProcessorContext<String, byte[]> context;
    private KeyValueStore<String, byte[]> seen;
    private KeyValueStore<String, Long> wins;
    private long records;

    @Override
    public void init(ProcessorContext<String, byte[]> given) {
      context = given;
      seen = given.getStateStore("seen");
      wins = given.getStateStore("wins");
      records = 0;
      counts().values().forEach(count -> records += count);
    }

    private Map<String, Long> counts() {
      Map<String, Long> found = new TreeMap<>();
      try (var all = wins.all()) {
        all.forEachRemaining(entry -> found.put(entry.key, entry.value));
      }
      return found;
    }

    @Override
    public void process(Record<String, byte[]> record) {
      try {
        Duel duel = duels.readValue(record.value());
        if (seen.putIfAbsent(duel.id(), SEEN) != null) {
          return;
        }
        String pair = duel.pair();
        Long count = wins.get(pair);
        wins.put(pair, count == null ? 1 : count + 1);
        records += 1;
        if (records % EVERY == 0) {
          Result result = new Result(duel.experiment(), records, counts());
          context.forward(record.withValue(JSON.writeValueAsBytes(result)));
        }
      } catch (java.io.IOException error) {
        throw new java.io.UncheckedIOException(error);
      }
    }
  }

  private static KeyValueBytesStoreSupplier store(String name, boolean inMemory) {
    return inMemory ? Stores.inMemoryKeyValueStore(name) : Stores.persistentKeyValueStore(name);
  }

  public static void main(String[] arguments) throws Exception {
    JsonNode job = JSON.readTree(arguments[0]);
    boolean inMemory = job.get("variant").asText().equals("memory");
    Topology topology = new Topology();
    topology
        .addSource("duels", Serdes.String().deserializer(), Serdes.ByteArray().deserializer(),
            job.get("topic").asText())
        .addProcessor("count", Count::new, "duels")
        .addStateStore(Stores.keyValueStoreBuilder(
            store("seen", inMemory), Serdes.String(), Serdes.ByteArray()), "count")
        .addStateStore(Stores.keyValueStoreBuilder(
            store("wins", inMemory), Serdes.String(), Serdes.Long()).withCachingEnabled(), "count")
        .addSink("results", job.get("results").asText(), Serdes.String().serializer(),
            Serdes.ByteArray().serializer(), "count");
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, job.get("group").asText());
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, job.get("servers").asText());
    settings.put(StreamsConfig.STATE_DIR_CONFIG, job.get("state").asText());
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 500);
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    settings.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, job.get("group").asText());
    new KafkaStreams(topology, settings).start();
  }
}
