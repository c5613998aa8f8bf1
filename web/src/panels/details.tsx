// What is selected: a subscriber or a message, and why the one gets the other or does not.
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { api } from '../api';
import { boundsOf, pointOf } from '../geometry';
import { flyTo } from '../map/view';
import { attempt, dropSubscription, keepSubscription, messageById, panel, selected, subscriptions, tell } from '../state';
import type { Explanation, Message, Recipient, Subscription, TopEntry } from '../wire';
import { edit } from './subscribe';

/** The last of each kind that was selected: what `explain` is asked about. */
const lastMessage = signal<string | null>(null);
const lastSubscription = signal<string | null>(null);

export function Details() {
  const chosen = selected.value;
  if (!chosen) return null;
  const one = chosen.kind === 'subscription' ? subscriptions.value.get(chosen.id) : undefined;
  const message = chosen.kind === 'message' ? messageById.value.get(chosen.id) : undefined;
  return (
    <aside class="details" aria-label="Selected">
      <button type="button" class="close" aria-label="Close" onClick={() => (selected.value = null)}>
        ×
      </button>
      {one && <OfSubscription key={one.id} one={one} />}
      {message && <OfMessage key={message.id} message={message} />}
      {!one && !message && <p class="hint">{chosen.id} is no longer here.</p>}
    </aside>
  );
}

function OfSubscription({ one }: { one: Subscription }) {
  useEffect(() => void (lastSubscription.value = one.id), [one.id]);
  const remove = async () => {
    await attempt(async () => {
      await api.unsubscribe(one.id);
      dropSubscription(one.id);
      tell(`${one.id} is gone`);
    });
  };
  const pause = async () => {
    const kept = await attempt(() => api.pause(one.id, !one.paused));
    if (!kept) return;
    keepSubscription(kept);
    tell(`${one.id} ${kept.paused ? 'is paused' : 'listens again'}`);
  };
  return (
    <>
      <h2>{one.id}</h2>
      <p>
        <span class={`kind ${one.kind}`}>{one.kind}</span> {one.paused && <span class="kind paused">paused</span>} {one.interest ?? ((one.keywords ?? []).join(' ') || 'any words')}
      </p>
      <div class="actions">
        <button type="button" onClick={() => one.region && flyTo(boundsOf(one.region))} disabled={!one.region}>
          Show
        </button>
        <button type="button" onClick={() => (edit(one), (panel.value = 'subscribe'))}>
          Edit
        </button>
        <button type="button" onClick={() => void pause()}>
          {one.paused ? 'Resume' : 'Pause'}
        </button>
        <button type="button" class="danger" onClick={() => void remove()}>
          Delete
        </button>
      </div>
      {one.kind === 'moving' && <p class="hint">Drag its point on the map: messages enter and leave.</p>}
      {one.kind === 'ranked' && <TopList id={one.id} />}
      {lastMessage.value && <Why subscription={one.id} message={lastMessage.value} />}
    </>
  );
}

function OfMessage({ message }: { message: Message }) {
  useEffect(() => void (lastMessage.value = message.id), [message.id]);
  const [lon, lat] = pointOf(message.location);
  return (
    <>
      <h2>{message.text ?? (message.keywords ?? []).join(' ')}</h2>
      <p class="hint">
        {message.id} · {new Date(message.time).toLocaleString()} · {lon.toFixed(3)}, {lat.toFixed(3)}
      </p>
      <Recipients id={message.id} />
      {lastSubscription.value && <Why subscription={lastSubscription.value} message={message.id} />}
    </>
  );
}

function useAnswer<Answer>(ask: () => Promise<Answer>, ...of: unknown[]): Answer | null {
  const answer = useSignal<Answer | null>(null);
  useEffect(() => {
    void attempt(ask).then((found) => found !== undefined && (answer.value = found));
  }, of);
  return answer.value;
}

function Recipients({ id }: { id: string }) {
  const found = useAnswer(() => api.recipients(id), id);
  if (!found) return null;
  return (
    <section>
      <h3>{found.n === 0 ? 'Nobody got it' : `${found.n} got it`}</h3>
      <ul class="recipients">
        {found.recipients.slice(0, 12).map((one: Recipient) => (
          <li>
            <button type="button" class="link" onClick={() => (selected.value = { kind: 'subscription', id: one.subscription })}>
              {one.subscription}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function TopList({ id }: { id: string }) {
  const found = useAnswer(() => api.top(id), id);
  if (!found) return null;
  return (
    <ol class="top">
      {found.entries.map((entry: TopEntry) => (
        <li>
          <button type="button" class="link" onClick={() => (selected.value = { kind: 'message', id: entry.message.id })}>
            {entry.message.text ?? (entry.message.keywords ?? []).join(' ')}
          </button>{' '}
          <span class="hint">{entry.score.toFixed(3)}</span>
        </li>
      ))}
    </ol>
  );
}

function Why({ subscription, message }: { subscription: string; message: string }) {
  const found = useAnswer<Explanation>(() => api.explain(subscription, message), subscription, message);
  if (!found) return null;
  return (
    <section class="why">
      <h3>
        {found.matched ? 'Why' : 'Why not'}: {message} → {subscription}
      </h3>
      <ul>
        {found.reasons.map((reason) => (
          <li>{reason}</li>
        ))}
      </ul>
      {found.path.length > 0 && (
        <details>
          <summary>The way through the index</summary>
          <ol>
            {found.path.map((step) => (
              <li>{step}</li>
            ))}
          </ol>
        </details>
      )}
    </section>
  );
}
