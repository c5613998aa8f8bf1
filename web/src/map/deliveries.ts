// Deliveries as brief lines from the message to who gets it. Frames are asked for only while there is something to fade.
import type { GeoJSONSource, Map as MapView } from 'maplibre-gl';
import { endsOf, whenDelivered } from '../state';
import type { Position } from '../wire';
import { lines } from './layers';

const SHOWN_MS = 1_600;
const MOST_SHOWN = 200;
const FRAME_MS = 60;

export function showDeliveries(view: MapView): void {
  let shown: { path: Position[]; since: number }[] = [];
  let isRunning = false;
  const draw = () => {
    const now = performance.now();
    shown = shown.filter((line) => now - line.since < SHOWN_MS);
    const faded = shown.map((line) => ({ path: line.path, strength: 1 - (now - line.since) / SHOWN_MS }));
    view.getSource<GeoJSONSource>('deliveries')?.setData(lines(faded));
    isRunning = shown.length > 0;
    if (isRunning) setTimeout(draw, FRAME_MS);
  };
  whenDelivered((event) => {
    const ends = endsOf(event);
    if (!ends) return;
    shown = [...shown, { path: ends, since: performance.now() }].slice(-MOST_SHOWN);
    if (!isRunning) {
      isRunning = true;
      setTimeout(draw, 0);
    }
  });
}
