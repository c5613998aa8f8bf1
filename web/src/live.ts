// Events as they happen, over one request that stays open. Read with fetch, not EventSource, so that the key goes in a header
// and not into an address. After a break it goes on behind the last event that came.
import { signal } from '@preact/signals';
import { key } from './api';
import type { StreamEvent } from './wire';

export type Connection = 'connected' | 'connecting' | 'refused';
export const connection = signal<Connection>('connecting');

const LONGEST_PAUSE_MS = 5_000;
const FIRST_PAUSE_MS = 250;

/** Calls `take` with the events of each frame until `stop` is aborted. */
export async function listen(take: (events: StreamEvent[]) => void, stop: AbortSignal): Promise<void> {
  let cursor: string | null = null;
  let pause = FIRST_PAUSE_MS;
  while (!stop.aborted) {
    connection.value = 'connecting';
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream', authorization: `Bearer ${key.value ?? ''}` };
      if (cursor !== null) headers['last-event-id'] = cursor;
      const answer = await fetch('/v1/live/events', { headers, signal: stop });
      if (answer.status === 401 || answer.status === 403) {
        connection.value = 'refused';
        return;
      }
      if (answer.ok && answer.body) {
        connection.value = 'connected';
        pause = FIRST_PAUSE_MS;
        for await (const block of blocksOf(answer.body)) {
          cursor = block.id ?? cursor;
          if (block.data) take(eventsOf(block.data));
        }
      }
    } catch (problem) {
      if (stop.aborted) return;
      if (!(problem instanceof TypeError)) throw problem;
    }
    connection.value = 'connecting';
    await new Promise((wake) => setTimeout(wake, pause));
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  }
}

interface Block {
  id: string | null;
  data: string;
}

/** The blocks of a text/event-stream. */
async function* blocksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Block> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  let waiting = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value.replaceAll('\r', '');
    let end = waiting.indexOf('\n\n');
    while (end >= 0) {
      yield blockOf(waiting.slice(0, end));
      waiting = waiting.slice(end + 2);
      end = waiting.indexOf('\n\n');
    }
  }
}

function blockOf(text: string): Block {
  const block: Block = { id: null, data: '' };
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, '');
    if (line.startsWith('id:')) block.id = value;
    if (line.startsWith('data:')) block.data += value;
  }
  return block;
}

function eventsOf(data: string): StreamEvent[] {
  const read = JSON.parse(data);
  return Array.isArray(read) ? read : (read.events ?? [read]);
}
