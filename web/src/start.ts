// What the address asks for behind its #, which no server sees: `#key=...&at=lon,lat,zoom&tour`.
import { useKey } from './api';
import type { Position } from './wire';

const asked = new URLSearchParams(location.hash.slice(1));

function viewOf(given: string | null): { center: Position; zoom: number } | null {
  const [lon, lat, zoom] = (given ?? '').split(',').map(Number);
  return given && [lon, lat, zoom].every(Number.isFinite) ? { center: [lon!, lat!], zoom: zoom! } : null;
}

export const start = { view: viewOf(asked.get('at')), isTour: asked.has('tour') };

// A key must not stay where it can be read over a shoulder or land in a bookmark.
const givenKey = asked.get('key');
if (givenKey) useKey(givenKey);
if (location.hash) history.replaceState(null, '', location.pathname);
