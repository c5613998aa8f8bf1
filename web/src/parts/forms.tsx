// Small parts of forms that several panels use.
import type { ComponentChildren } from 'preact';
import { drawing, type Shape } from '../state';

export function Field(given: { label: string; hint?: string; problem?: string | null; children: ComponentChildren }) {
  return (
    <label class="field">
      <span class="label">{given.label}</span>
      {given.children}
      {given.problem ? (
        <span class="problem" role="alert">
          {given.problem}
        </span>
      ) : (
        given.hint && <span class="hint">{given.hint}</span>
      )}
    </label>
  );
}

/** Which shape is drawn next; pressing it again gives up. */
export function ShapeButtons({ shapes }: { shapes: Shape[] }) {
  const names: Record<Shape, string> = { box: 'Box', circle: 'Circle', polygon: 'Polygon', point: 'Place' };
  return (
    <div class="shapes" role="group" aria-label="Draw">
      {shapes.map((shape) => (
        <button
          type="button"
          aria-pressed={drawing.value === shape}
          onClick={() => (drawing.value = drawing.value === shape ? null : shape)}
        >
          {names[shape]}
        </button>
      ))}
    </div>
  );
}

export function Segments<Value extends string>(given: {
  label: string;
  value: Value;
  options: readonly [Value, string][];
  choose: (value: Value) => void;
}) {
  return (
    <div class="segments" role="radiogroup" aria-label={given.label}>
      {given.options.map(([value, name]) => (
        <button type="button" role="radio" aria-checked={given.value === value} onClick={() => given.choose(value)}>
          {name}
        </button>
      ))}
    </div>
  );
}
