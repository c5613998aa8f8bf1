// What came, newest first.
import { useSignal } from '@preact/signals';
import { metres } from '../geometry';
import { events, selected } from '../state';
import type { StreamEvent } from '../wire';

const MEANINGS: Record<string, [string, string]> = {
  'io.nearcast.match': ['matched', 'in'],
  'io.nearcast.entered': ['entered', 'in'],
  'io.nearcast.left': ['left', 'out'],
  'io.nearcast.dwelled': ['stayed', 'in'],
  'io.nearcast.topk.in': ['in the list', 'in'],
  'io.nearcast.topk.out': ['out of the list', 'out'],
  'io.nearcast.subscription.ended': ['ended', 'out'],
  'io.nearcast.gap': ['some are gone', 'out'],
};

export function InboxPanel() {
  // Rows that slide away under the pointer cannot be clicked: while it is over them they stay.
  const held = useSignal<readonly StreamEvent[] | null>(null);
  const shown = held.value ?? events.value;
  return (
    <section class="panel">
      <h2>Inbox {held.value && <span class="hint">holding still</span>}</h2>
      {events.value.length === 0 && <p class="hint">Nothing yet. Messages that match a subscription of yours appear here at once.</p>}
      <ol
        class="events"
        aria-live="polite"
        onPointerEnter={() => (held.value = events.value)}
        onPointerLeave={() => (held.value = null)}
      >
        {shown.slice(0, 100).map((event) => (
          <Row key={event.id} event={event} />
        ))}
      </ol>
    </section>
  );
}

function Row({ event }: { event: StreamEvent }) {
  const { message, distance, score, rank, subscription } = event.data;
  const [meaning, direction] = MEANINGS[event.type] ?? [event.type, 'in'];
  return (
    <li class={direction}>
      <button type="button" class="row" onClick={() => message && (selected.value = { kind: 'message', id: message.id })}>
        <span class="what">{message ? (message.text ?? (message.keywords ?? []).join(' ')) : (event.data.reason ?? meaning)}</span>
        <span class="meta">
          <b>{meaning}</b> · {subscription}
          {distance !== undefined && ` · ${metres(distance)}`}
          {score !== undefined && ` · ${score.toFixed(3)}`}
          {rank !== undefined && ` · no. ${rank}`}
          {` · ${new Date(event.time).toLocaleTimeString()}`}
        </span>
      </button>
    </li>
  );
}
