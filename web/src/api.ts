// Requests to the server this page came from. The key is kept for this tab only.
import { signal } from '@preact/signals';
import type {
  Cell,
  DryRun,
  Explanation,
  Message,
  MessageIn,
  Position,
  Pulse,
  Recipient,
  Stats,
  StreamEvent,
  Subscription,
  SubscriptionIn,
  TopEntry,
} from './wire';

const KEPT_KEY = 'nearcast-key';

export const key = signal<string | null>(sessionStorage.getItem(KEPT_KEY));

export function useKey(given: string | null): void {
  key.value = given;
  if (given === null) sessionStorage.removeItem(KEPT_KEY);
  else sessionStorage.setItem(KEPT_KEY, given);
}

/** What the server answered instead of what was asked for. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly where?: string,
  ) {
    super(message);
  }
}

async function ask<Answer>(method: string, path: string, body?: unknown, as = key.value): Promise<Answer> {
  const headers: Record<string, string> = { accept: 'application/json' };
  if (as) headers.authorization = `Bearer ${as}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const answer = await fetch(`/v1/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.status === 204) return undefined as Answer;
  const text = await answer.text();
  const read = text ? JSON.parse(text) : {};
  if (!answer.ok) {
    const problem = read.error ?? { code: 'unknown', message: `the server answered ${answer.status}` };
    throw new Refusal(answer.status, problem.code, problem.message, problem.where);
  }
  return read as Answer;
}

const named = (id: string) => encodeURIComponent(id);

export const api = {
  async subscriptions(most: number): Promise<Subscription[]> {
    const found: Subscription[] = [];
    let next: string | undefined;
    do {
      const page: { subscriptions: Subscription[]; next?: string } = await ask(
        'GET',
        `subscriptions?limit=1000${next ? `&after=${encodeURIComponent(next)}` : ''}`,
      );
      found.push(...page.subscriptions);
      next = page.next;
    } while (next && found.length < most);
    return found;
  },
  subscribe: (given: SubscriptionIn) =>
    given.id ? ask<Subscription>('PUT', `subscriptions/${named(given.id)}`, given) : ask<Subscription>('POST', 'subscriptions', given),
  pause: (id: string, paused: boolean) => ask<Subscription>('PATCH', `subscriptions/${named(id)}`, { paused }),
  unsubscribe: (id: string) => ask<void>('DELETE', `subscriptions/${named(id)}`),
  publish: (message: MessageIn) => ask<{ id: string }>('POST', 'messages', message),
  move: (subscription: string, location: Position) =>
    ask<unknown>('POST', 'locations', { subscription, location: { type: 'Point', coordinates: location } }),
  current: (id: string) => ask<{ messages: Message[] }>('GET', `subscriptions/${named(id)}/current`),
  top: (id: string) => ask<{ entries: TopEntry[] }>('GET', `subscriptions/${named(id)}/top`),
  explain: (subscription: string, messageId: string) =>
    ask<Explanation>('POST', 'explain', { subscription, message_id: messageId }),
  dryRun: (subscription: SubscriptionIn) => ask<DryRun>('POST', 'dry-run', { subscription, messages: 1000 }),
  stats: () => ask<Stats>('GET', 'stats'),
  /** Whether the server knows a key; it is not used before. */
  tryKey: (given: string) => ask<Stats>('GET', 'stats', undefined, given),
  inbox: (after: string, limit: number) => ask<{ events: StreamEvent[]; cursor: string }>('GET', `inbox?after=${after}&limit=${limit}`),
  pulse: (after: string | null) => ask<Pulse>('GET', `console/pulse${after === null ? '' : `?after=${after}`}`),
  cells: (bbox: number[]) => ask<{ cells: Cell[] }>('GET', `console/cells?bbox=${bbox.map((side) => side.toFixed(5)).join(',')}`),
  recipients: (id: string) => ask<{ recipients: Recipient[]; n: number }>('GET', `console/messages/${named(id)}/recipients`),
};
