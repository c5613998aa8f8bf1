import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.analysis.core.KeywordAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.TermFilteredPresearcher;
import org.apache.lucene.monitor.TermWeightor;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.TermQuery;

/**
 * Lucene Monitor behind standard input and output, numbers in network order. In: how often each keyword was seen; the
 * subscriptions (id, box, keywords); then batches of messages (place, keywords), until it is killed. Out: a 1 once all are
 * filed, then for each message the ids of its subscriptions.
 */
public class LuceneMonitor {
  private static final int AT_ONCE = 20_000;

  public static void main(String[] given) throws IOException {
    DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
    DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
    try (Monitor monitor = new Monitor(new KeywordAnalyzer(), presearcher(in), new MonitorConfiguration())) {
      file(in, monitor);
      out.writeInt(1);
      out.flush();
      while (true) {
        int n = in.readInt();
        for (int i = 0; i < n; i++) {
          answer(in, out, monitor);
        }
        out.flush();
      }
    }
  }

  private static TermFilteredPresearcher presearcher(DataInputStream in) throws IOException {
    Map<String, Integer> seen = new HashMap<>();
    int n = in.readInt();
    for (int i = 0; i < n; i++) {
      int word = in.readInt();
      seen.put(Integer.toString(word), in.readInt());
    }
    // Subscriptions are filed by their rarest word.
    TermWeightor weightor = TermWeightor.termFreqWeightor(seen, 100.0, 1e-6);
    return new TermFilteredPresearcher(weightor, List.of(), java.util.Set.of());
  }

  private static void file(DataInputStream in, Monitor monitor) throws IOException {
    int n = in.readInt();
    List<MonitorQuery> some = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      String id = Long.toString(in.readLong());
      double[] low = {in.readDouble(), in.readDouble()}, high = {in.readDouble(), in.readDouble()};
      BooleanQuery.Builder all = new BooleanQuery.Builder();
      int words = in.readInt();
      for (int word = 0; word < words; word++) {
        all.add(new TermQuery(new Term("word", Integer.toString(in.readInt()))), BooleanClause.Occur.FILTER);
      }
      all.add(DoublePoint.newRangeQuery("at", low, high), BooleanClause.Occur.FILTER);
      some.add(new MonitorQuery(id, all.build()));
      if (some.size() == AT_ONCE || i + 1 == n) {
        monitor.register(some);
        some.clear();
      }
    }
  }

  private static void answer(DataInputStream in, DataOutputStream out, Monitor monitor) throws IOException {
    Document message = new Document();
    message.add(new DoublePoint("at", in.readDouble(), in.readDouble()));
    int words = in.readInt();
    for (int word = 0; word < words; word++) {
      message.add(new StringField("word", Integer.toString(in.readInt()), Field.Store.NO));
    }
    var found = monitor.match(message, QueryMatch.SIMPLE_MATCHER).getMatches();
    out.writeInt(found.size());
    for (QueryMatch one : found) {
      out.writeLong(Long.parseLong(one.getQueryId()));
    }
  }
}
