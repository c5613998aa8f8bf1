// Choosing a subscriber or a message by clicking it, and taking a moving subscriber elsewhere by dragging its middle.
import type { Map as MapView } from 'maplibre-gl';
import { api } from '../api';
import { movedTo } from '../geometry';
import { attempt, dragged, drawing, noteMoves, selected, subscriptions } from '../state';
import type { Position } from '../wire';

const NEAR_PX = 6;
// The server is told where a dragged subscriber is, at most so often.
const TELL_MS = 150;

export function letPick(view: MapView): void {
  view.on('click', (event) => {
    if (drawing.value) return;
    const { x, y } = event.point;
    const around: [[number, number], [number, number]] = [
      [x - NEAR_PX, y - NEAR_PX],
      [x + NEAR_PX, y + NEAR_PX],
    ];
    const layers = ['places', 'messages', 'area-borders', 'areas'].filter((name) => view.getLayer(name));
    const found = view.queryRenderedFeatures(around, { layers });
    const best = layers.map((name) => found.find((one) => one.layer.id === name)).find(Boolean);
    if (!best) selected.value = null;
    else selected.value = { kind: best.layer.id === 'messages' ? 'message' : 'subscription', id: String(best.properties.id) };
  });
  for (const layer of ['places', 'messages']) {
    view.on('mouseenter', layer, () => drawing.value || (view.getCanvas().style.cursor = 'pointer'));
    view.on('mouseleave', layer, () => drawing.value || (view.getCanvas().style.cursor = ''));
  }
}

export function letDrag(view: MapView): void {
  let lastTold = 0;
  // One request after the other: two at once might arrive in the other order, and the last must count.
  let next: { id: string; to: Position } | null = null;
  let isTelling = false;
  const tellServer = async () => {
    if (isTelling) return;
    isTelling = true;
    while (next) {
      const { id, to } = next;
      next = null;
      await attempt(() => api.move(id, to));
    }
    isTelling = false;
  };
  const moved = (to: Position, isLast: boolean) => {
    const known = dragged.value === null ? undefined : subscriptions.value.get(dragged.value);
    if (!known?.region) return;
    noteMoves([{ subscription: known.id, region: movedTo(known.region, to) }]);
    if (isLast || performance.now() - lastTold > TELL_MS) {
      lastTold = performance.now();
      next = { id: known.id, to };
      void tellServer();
    }
  };
  view.on('mousedown', 'places', (event) => {
    const picked = event.features?.[0]?.properties;
    if (drawing.value || picked?.kind !== 'moving') return;
    event.preventDefault();
    dragged.value = String(picked.id);
    selected.value = { kind: 'subscription', id: dragged.value };
    // Wherever the pointer is by then: a panel may have come under it.
    window.addEventListener('mouseup', dropped, { once: true });
  });
  view.on('mousemove', (event) => moved([event.lngLat.lng, event.lngLat.lat], false));
  const dropped = (event: MouseEvent) => {
    const { left, top } = view.getCanvas().getBoundingClientRect();
    const { lng, lat } = view.unproject([event.clientX - left, event.clientY - top]);
    moved([lng, lat], true);
    dragged.value = null;
  };
}
