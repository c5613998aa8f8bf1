// What the page knows. Panels read these signals; the map follows them.
import { batch, computed, effect, signal } from '@preact/signals';
import { api, key, Refusal } from './api';
import { middleOf, pointOf } from './geometry';
import { listen } from './live';
import type { Message, Position, Region, StreamEvent, Subscription } from './wire';

export const MOST_SUBSCRIPTIONS = 5_000;
export const MOST_MESSAGES = 10_000;
const MOST_EVENTS = 500;
const MOST_POINTS_OF_A_TRAIL = 40;
const HISTORY_S = 180;
const PULSE_MS = 1_000;

export type Panel = 'subscribe' | 'publish' | 'inbox' | 'index' | 'system';
export type Shape = 'box' | 'circle' | 'polygon' | 'point';
export type Selected = { kind: 'subscription'; id: string } | { kind: 'message'; id: string } | null;

export const panel = signal<Panel>('subscribe');
export const subscriptions = signal<ReadonlyMap<string, Subscription>>(new Map());
export const messages = signal<readonly Message[]>([]);
export const events = signal<readonly StreamEvent[]>([]);
export const selected = signal<Selected>(null);
export const notice = signal<{ text: string; isBad: boolean } | null>(null);
export const trails = signal<ReadonlyMap<string, Position[]>>(new Map());
/** The region or place being drawn, and what is drawn next. */
export const draft = signal<Region | null>(null);
export const drawing = signal<Shape | null>(null);
export const clicked = signal<Position | null>(null);
/** The moving subscriber that is being dragged. */
export const dragged = signal<string | null>(null);
/** Names of numbers of the server, each with its last values, one a second. */
export const history = signal<{ at: number[]; values: Record<string, (number | null)[]> }>({ at: [], values: {} });
export const isIndexShown = signal(false);
export const theme = signal<'light' | 'dark'>(
  (localStorage.getItem('nearcast-theme') as 'light' | 'dark' | null) ??
    (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'),
);
export const messageById = computed(() => new Map(messages.value.map((message) => [message.id, message])));

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem('nearcast-theme', theme.value);
});

let noticeTimer = 0;
export function tell(text: string, isBad = false): void {
  notice.value = { text, isBad };
  clearTimeout(noticeTimer);
  noticeTimer = window.setTimeout(() => (notice.value = null), isBad ? 9_000 : 4_000);
}

/** Do something that the server may refuse; the refusal is shown. */
export async function attempt<Answer>(work: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await work();
  } catch (problem) {
    tell(problem instanceof Refusal ? problem.message : 'the server does not answer', true);
    return undefined;
  }
}

export function keepSubscription(kept: Subscription): void {
  subscriptions.value = new Map(subscriptions.value).set(kept.id, kept);
}

export function dropSubscription(id: string): void {
  const left = new Map(subscriptions.value);
  left.delete(id);
  subscriptions.value = left;
  if (selected.value?.kind === 'subscription' && selected.value.id === id) selected.value = null;
}

/** Moving subscribers are elsewhere: they are shown there at once, with a trail. */
export function noteMoves(moves: Iterable<{ subscription: string; region: Region }>): void {
  const known = new Map(subscriptions.value);
  const grown = new Map(trails.value);
  for (const { subscription, region } of moves) {
    const one = known.get(subscription);
    if (!one) continue;
    known.set(subscription, { ...one, region });
    const from = grown.get(subscription) ?? (one.region ? [middleOf(one.region)] : []);
    grown.set(subscription, [...from, middleOf(region)].slice(-MOST_POINTS_OF_A_TRAIL));
  }
  batch(() => {
    trails.value = grown;
    subscriptions.value = known;
  });
}

// --- what the server tells --------------------------------------------------------------------------------------------

type Listener = (event: StreamEvent) => void;
const onDelivery = new Set<Listener>();
/** Called for every event that has a message: the map draws a line for it. */
export const whenDelivered = (listener: Listener) => void onDelivery.add(listener);

function takeEvents(came: StreamEvent[]): void {
  events.value = [...came.toReversed(), ...events.value].slice(0, MOST_EVENTS);
  for (const event of came) if (event.data.message) for (const listener of onDelivery) listener(event);
}

function takeMessages(came: Message[]): void {
  if (came.length) messages.value = [...messages.value, ...came].slice(-MOST_MESSAGES);
}

function takeSystem(system: Record<string, number>): void {
  const { at, values } = history.value;
  const n = at.length;
  const grown: Record<string, (number | null)[]> = {};
  for (const name of new Set([...Object.keys(values), ...Object.keys(system)])) {
    grown[name] = [...(values[name] ?? Array<null>(n).fill(null)), system[name] ?? null].slice(-HISTORY_S);
  }
  history.value = { at: [...at, Date.now() / 1000].slice(-HISTORY_S), values: grown };
}

let stop: AbortController | null = null;

/** Load what there is, then follow what happens, until the key changes. */
export async function follow(): Promise<void> {
  stop?.abort();
  const own = (stop = new AbortController());
  const found = await api.subscriptions(MOST_SUBSCRIPTIONS);
  subscriptions.value = new Map(found.map((one) => [one.id, one]));
  void listen(takeEvents, own.signal);
  let cursor: string | null = null;
  while (!own.signal.aborted && key.value !== null) {
    try {
      const pulse = await api.pulse(cursor);
      cursor = pulse.cursor;
      batch(() => {
        takeMessages(pulse.messages);
        // The one in hand is where the hand is.
        const others = pulse.moved.filter((move) => move.subscription !== dragged.value);
        if (others.length) noteMoves(others);
        takeSystem(pulse.system);
      });
    } catch (problem) {
      // A server that is away is asked again; one that refuses is not.
      if (problem instanceof Refusal && problem.status < 500 && problem.status !== 429) return;
    }
    await new Promise((wake) => setTimeout(wake, PULSE_MS));
  }
}

/** From where to where a delivery goes on the map; null if one end is not known. */
export function endsOf(event: StreamEvent): [Position, Position] | null {
  const to = subscriptions.value.get(event.data.subscription);
  if (!event.data.message || !to) return null;
  const where = to.region ? middleOf(to.region) : to.location?.coordinates;
  return where ? [pointOf(event.data.message.location), where] : null;
}
