// Draw a region, type an interest, see what it would have brought, subscribe.
import { computed, effect, signal } from '@preact/signals';
import { api, Refusal } from '../api';
import { middleOf, metres } from '../geometry';
import { Field, Segments, ShapeButtons } from '../parts/forms';
import { attempt, clicked, draft, drawing, history, keepSubscription, selected, subscriptions, tell } from '../state';
import type { DryRun, Kind, Position, Region, Subscription, SubscriptionIn } from '../wire';

const TYPING_PAUSE_MS = 300;

const kind = signal<Kind>('boolean');
const interest = signal('');
const name = signal('');
const k = signal(10);
const spatialWeight = signal(0.5);
const problem = signal<string | null>(null);
const trial = signal<DryRun | null>(null);
/** What the form does not show of the one that is edited: it stays as it is. */
const rest = signal<Partial<SubscriptionIn>>({});
const isEditing = computed(() => subscriptions.value.has(name.value));

/** What the form says so far; null while it lacks something. */
const given = computed<SubscriptionIn | null>(() => {
  const id = name.value.trim() || undefined;
  if (kind.value === 'ranked') {
    const keywords = interest.value.split(/[\s,]+/).filter(Boolean);
    const at: Position | null = clicked.value ?? (draft.value ? middleOf(draft.value) : null);
    if (!keywords.length || !at) return null;
    const location = { type: 'Point' as const, coordinates: at };
    return { kind: 'ranked', id, keywords, location, k: k.value, spatial_weight: spatialWeight.value };
  }
  const words = interest.value.trim() ? { interest: interest.value.trim() } : { keywords: [] };
  if (!draft.value) return null;
  return { kind: kind.value, id, ...words, region: draft.value };
});

// The server reads the interest as it is typed, and tries it on the last messages.
let timer = 0;
effect(() => {
  const wanted = given.value;
  clearTimeout(timer);
  if (!wanted) {
    trial.value = null;
    problem.value = null;
    return;
  }
  timer = window.setTimeout(() => void tryOut(wanted), TYPING_PAUSE_MS);
});

async function tryOut(wanted: SubscriptionIn): Promise<void> {
  try {
    const found = await api.dryRun({ ...wanted, id: undefined });
    if (given.value === wanted) [trial.value, problem.value] = [found, null];
  } catch (refused) {
    if (given.value === wanted && refused instanceof Refusal) [trial.value, problem.value] = [null, refused.message];
  }
}

/** Put a subscription into the form. */
export function edit(one: Subscription): void {
  kind.value = one.kind;
  name.value = one.id;
  const { tags, metadata, expires, delivery, subscriber, paused } = one;
  rest.value = { tags, metadata, expires, delivery, subscriber, paused };
  interest.value = one.interest ?? (one.keywords ?? []).join(one.kind === 'ranked' ? ' ' : ' AND ');
  draft.value = one.region ?? null;
  clicked.value = one.location?.coordinates ?? null;
  k.value = one.k ?? 10;
  spatialWeight.value = one.spatial_weight ?? 0.5;
}

async function subscribe(event: Event): Promise<void> {
  event.preventDefault();
  const wanted = given.value;
  if (!wanted) return;
  const unseen = isEditing.value ? rest.value : {};
  const kept = await attempt(() => api.subscribe({ ...unseen, ...wanted }));
  if (!kept) return;
  keepSubscription(kept);
  tell(`${kept.id} listens`);
  name.value = '';
  draft.value = null;
  clicked.value = null;
  selected.value = { kind: 'subscription', id: kept.id };
}

export function SubscribePanel() {
  const isRanked = kind.value === 'ranked';
  return (
    <form class="panel" onSubmit={subscribe}>
      <h2>{isEditing.value ? `Edit ${name.value}` : 'New subscription'}</h2>
      <Segments
        label="Kind of subscription"
        value={kind.value}
        options={[
          ['boolean', 'Fixed'],
          ['moving', 'Moving'],
          ['ranked', 'Ranked'],
        ]}
        choose={(chosen) => (kind.value = chosen)}
      />
      <Field
        label={isRanked ? 'Words' : 'Interest'}
        hint={isRanked ? 'any of these' : 'such as: (jazz OR blues) AND NOT karaoke'}
        problem={problem.value}
      >
        <input name="interest" autocomplete="off" spellcheck={false} value={interest.value} onInput={(e) => (interest.value = e.currentTarget.value)} />
      </Field>
      <div class="field">
        <span class="label">{isRanked ? 'Where' : 'Region'}</span>
        <ShapeButtons shapes={isRanked ? ['point'] : ['circle', 'box', 'polygon']} />
        <span class="hint">{placeHint(isRanked)}</span>
      </div>
      {!isRanked && draft.value && <ByNumbers region={draft.value} />}
      {isRanked && (
        <div class="pair">
          <Field label="How many">
            <input type="number" min={1} max={100} value={k.value} onInput={(e) => (k.value = Number(e.currentTarget.value) || 1)} />
          </Field>
          <Field label={`Near ${Math.round(spatialWeight.value * 100)} %`}>
            <input type="range" min={0} max={1} step={0.05} value={spatialWeight.value} onInput={(e) => (spatialWeight.value = Number(e.currentTarget.value))} />
          </Field>
        </div>
      )}
      <Field label="Name" hint="of your choice; a known one is replaced">
        <input name="name" autocomplete="off" value={name.value} onInput={(e) => (name.value = e.currentTarget.value)} />
      </Field>
      {trial.value && <Trial found={trial.value} />}
      <button class="main" type="submit" disabled={!given.value || problem.value !== null}>
        {isEditing.value ? 'Replace' : 'Subscribe'}
      </button>
    </form>
  );
}

function placeHint(isRanked: boolean): string {
  if (drawing.value === 'polygon') return 'click its corners, double-click the last';
  if (drawing.value === 'point') return 'click the map';
  if (drawing.value) return 'press and drag on the map';
  if (isRanked) return clicked.value ? `${clicked.value.map((side) => side.toFixed(3)).join(', ')}` : 'choose, then click the map';
  if (draft.value?.type === 'Circle') return `circle of ${metres(draft.value.radius)}`;
  return draft.value ? draft.value.type.toLowerCase() : 'choose a shape, then draw it on the map';
}

/** The same by numbers, for who cannot or will not drag. */
function ByNumbers({ region }: { region: Region }) {
  if (region.type !== 'Circle') return null;
  const [lon, lat] = region.coordinates;
  const change = (at: Position, radius: number) => (draft.value = { type: 'Circle', coordinates: at, radius });
  return (
    <div class="triple">
      <Field label="Longitude">
        <input type="number" step="any" value={lon.toFixed(4)} onChange={(e) => change([Number(e.currentTarget.value), lat], region.radius)} />
      </Field>
      <Field label="Latitude">
        <input type="number" step="any" value={lat.toFixed(4)} onChange={(e) => change([lon, Number(e.currentTarget.value)], region.radius)} />
      </Field>
      <Field label="Metres">
        <input type="number" min={1} value={Math.round(region.radius)} onChange={(e) => change(region.coordinates, Number(e.currentTarget.value) || 1)} />
      </Field>
    </div>
  );
}

function Trial({ found }: { found: DryRun }) {
  const share = found.tried ? found.hits / found.tried : 0;
  const rate = history.value.values.messages_per_second?.at(-1) ?? null;
  const perHour = rate === null ? null : 3600 * rate * share;
  return (
    <section class="trial" aria-live="polite">
      <strong>
        {found.hits} of the last {found.tried} messages
      </strong>{' '}
      would have come ({(100 * share).toFixed(share < 0.1 ? 1 : 0)} %)
      {perHour !== null && `: about ${perHour < 10 ? perHour.toFixed(1) : Math.round(perHour).toLocaleString()} an hour as things are now`}.
      <ul>
        {found.messages.slice(0, 3).map((message) => (
          <li>{message.text ?? (message.keywords ?? []).join(' ')}</li>
        ))}
      </ul>
    </section>
  );
}
