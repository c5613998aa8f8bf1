// Drawing a region with the pointer: a box or circle by dragging, a polygon by clicking its corners (double click ends it).
import type { Map as MapView, MapMouseEvent } from 'maplibre-gl';
import { distance } from '../geometry';
import { clicked, draft, drawing } from '../state';
import type { Position } from '../wire';

const LEAST_RADIUS_M = 10;

export function letDraw(view: MapView): void {
  let from: Position | null = null;
  let corners: Position[] = [];
  const at = (event: MapMouseEvent): Position => [event.lngLat.lng, event.lngLat.lat];

  view.on('mousedown', (event) => {
    if (drawing.value !== 'box' && drawing.value !== 'circle') return;
    event.preventDefault();
    from = at(event);
  });
  view.on('mousemove', (event) => {
    if (from && drawing.value === 'box') {
      const [lon, lat] = at(event);
      draft.value = {
        type: 'Box',
        bbox: [Math.min(from[0], lon), Math.min(from[1], lat), Math.max(from[0], lon), Math.max(from[1], lat)],
      };
    } else if (from && drawing.value === 'circle') {
      draft.value = { type: 'Circle', coordinates: from, radius: Math.max(LEAST_RADIUS_M, distance(from, at(event))) };
    } else if (drawing.value === 'polygon' && corners.length >= 2) {
      draft.value = { type: 'Polygon', coordinates: [[...corners, at(event), corners[0]!]] };
    }
  });
  view.on('mouseup', () => {
    if (from) drawing.value = null;
    from = null;
  });
  view.on('click', (event) => {
    if (drawing.value === 'point') {
      clicked.value = at(event);
      drawing.value = null;
    } else if (drawing.value === 'polygon') {
      corners = [...corners, at(event)];
    }
  });
  view.on('dblclick', (event) => {
    if (drawing.value !== 'polygon') return;
    event.preventDefault();
    if (corners.length >= 3) draft.value = { type: 'Polygon', coordinates: [[...corners, corners[0]!]] };
    corners = [];
    drawing.value = null;
  });
  drawing.subscribe((shape) => {
    corners = [];
    view.getCanvas().style.cursor = shape ? 'crosshair' : '';
  });
}
