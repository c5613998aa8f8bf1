// The structure that matches: its cells under the view, and how much it looks at for each match.
import { useEffect } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { api } from '../api';
import { attempt, history, isIndexShown } from '../state';
import type { Stats } from '../wire';

const EVERY_MS = 3_000;

export function IndexPanel() {
  const stats = useSignal<Stats | null>(null);
  useEffect(() => {
    const load = () => void attempt(api.stats).then((found) => found && (stats.value = found));
    load();
    const timer = setInterval(load, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const last = (name: string) => history.value.values[name]?.at(-1) ?? null;
  const candidates = last('candidates_per_message');
  const matches = last('matches_per_message');
  return (
    <section class="panel">
      <h2>The index</h2>
      <label class="check">
        <input type="checkbox" checked={isIndexShown.value} onChange={(e) => (isIndexShown.value = e.currentTarget.checked)} />
        Show its cells on the map, coloured by load
      </label>
      <h3>The last messages</h3>
      {candidates === null ? (
        <p class="hint">No message came in the last second.</p>
      ) : (
        <p>
          <strong>{candidates.toFixed(1)}</strong> subscriptions looked at, <strong>{(matches ?? 0).toFixed(1)}</strong> matched, per message.
        </p>
      )}
      {stats.value &&
        Object.entries(stats.value.engines).map(([name, numbers]) => (
          <details open={name === 'boolean'}>
            <summary>{name}</summary>
            <dl>
              {Object.entries(numbers).map(([what, value]) => (
                <>
                  <dt>{what.replaceAll('_', ' ')}</dt>
                  <dd>{typeof value === 'number' ? value.toLocaleString() : value}</dd>
                </>
              ))}
            </dl>
          </details>
        ))}
    </section>
  );
}
