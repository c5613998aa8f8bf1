// A test message at a clicked place.
import { signal } from '@preact/signals';
import { api } from '../api';
import { Field, ShapeButtons } from '../parts/forms';
import { attempt, clicked, drawing, tell } from '../state';

const text = signal('');
const minutes = signal(10);

async function publish(event: Event): Promise<void> {
  event.preventDefault();
  const at = clicked.value;
  if (!at || !text.value.trim()) return;
  const message = { text: text.value, location: { type: 'Point' as const, coordinates: at }, lifetime: 60 * minutes.value };
  const receipt = await attempt(() => api.publish(message));
  if (receipt) tell(`${receipt.id} is out`);
}

export function PublishPanel() {
  return (
    <form class="panel" onSubmit={publish}>
      <h2>Publish a message</h2>
      <Field label="Text" hint="its words are what interests are about">
        <textarea name="text" rows={3} value={text.value} onInput={(e) => (text.value = e.currentTarget.value)} />
      </Field>
      <div class="field">
        <span class="label">Where</span>
        <ShapeButtons shapes={['point']} />
        <span class="hint">
          {drawing.value === 'point' ? 'click the map' : clicked.value ? clicked.value.map((side) => side.toFixed(4)).join(', ') : 'choose, then click the map'}
        </span>
      </div>
      <div class="pair">
        <Field label="Longitude">
          <input name="lon" type="number" step="any" value={clicked.value?.[0] ?? ''} onChange={(e) => (clicked.value = [Number(e.currentTarget.value), clicked.value?.[1] ?? 0])} />
        </Field>
        <Field label="Latitude">
          <input name="lat" type="number" step="any" value={clicked.value?.[1] ?? ''} onChange={(e) => (clicked.value = [clicked.value?.[0] ?? 0, Number(e.currentTarget.value)])} />
        </Field>
      </div>
      <Field label="Lives for, minutes">
        <input type="number" min={1} value={minutes.value} onInput={(e) => (minutes.value = Number(e.currentTarget.value) || 1)} />
      </Field>
      <button class="main" type="submit" disabled={!clicked.value || !text.value.trim()}>
        Publish
      </button>
    </form>
  );
}
