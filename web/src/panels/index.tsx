// The structure that matches: its cells under the view, and how much it looks at for each match.
import { useEffect } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { api } from '../api';
import { metres } from '../geometry';
import { ShapeButtons } from '../parts/forms';
import { attempt, clicked, history, isIndexShown } from '../state';
import type { Cell, Stats } from '../wire';

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
  // Sizes and cells of what all tenants share are told to operators only.
  const isOperator = stats.value !== null && 'boolean' in stats.value.engines;
  const candidates = last('candidates_per_message');
  const matches = last('matches_per_message');
  return (
    <section class="panel">
      <h2>The index</h2>
      <label class="check">
        <input type="checkbox" disabled={!isOperator} checked={isIndexShown.value} onChange={(e) => (isIndexShown.value = e.currentTarget.checked)} />
        Show its cells on the map, coloured by load
      </label>
      {isOperator && <PathOfPoint />}
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

const METRES_PER_DEGREE = 111_195;

/** Where a message at a clicked point would look: for each of its words, the list of one cell, at the level that word has. */
function PathOfPoint() {
  const cells = useSignal<Cell[]>([]);
  const at = clicked.value;
  useEffect(() => {
    cells.value = [];
    if (at) void attempt(() => api.cells([...at, ...at])).then((found) => found && (cells.value = found.cells));
  }, [at?.[0], at?.[1]]);
  return (
    <>
      <div class="field">
        <span class="label">The way of a point</span>
        <ShapeButtons shapes={['point']} />
        <span class="hint">{at ? at.map((side) => side.toFixed(4)).join(', ') : 'choose, then click the map'}</span>
      </div>
      {at && cells.value.length === 0 && <p class="hint">No cell lies over this point: only lists of whole words are looked at.</p>}
      <ol class="path">
        {[...cells.value]
          .sort((a, b) => a.level - b.level)
          .map(({ bbox: [west, south, east, north], level, load }) => (
            <li>
              words divided {level} times: a cell of {metres((east - west) * METRES_PER_DEGREE * Math.cos(((south + north) * Math.PI) / 360))} ×{' '}
              {metres((north - south) * METRES_PER_DEGREE)}, <strong>{load.toLocaleString()}</strong> filed
            </li>
          ))}
      </ol>
    </>
  );
}
