// Five steps through the page, for who sees it for the first time.
import { signal } from '@preact/signals';
import { panel, type Panel } from '../state';

const STEPS: { title: string; text: string; panel: Panel }[] = [
  {
    title: 'Interests on a map',
    text: 'Each outline is a subscription: a place and some words. Blue ones stay, green ones travel, violet points want the best few.',
    panel: 'inbox',
  },
  {
    title: 'Messages find their people',
    text: 'Orange points are messages. When one concerns a subscription, a line flashes from the one to the other, and the inbox has it.',
    panel: 'inbox',
  },
  {
    title: 'Say what you want',
    text: 'Draw a region and type an interest: you see at once how many of the last messages it would have brought. Then subscribe.',
    panel: 'subscribe',
  },
  {
    title: 'Ask why',
    text: 'Click a message to see who got it. Then click a subscriber: the page says why it got it, or why not.',
    panel: 'publish',
  },
  {
    title: 'Look inside',
    text: 'The index shows its cells by load, the system its speed. Everything here is also in the API.',
    panel: 'index',
  },
];

const step = signal<number | null>(null);

export function startTour(): void {
  step.value = 0;
  panel.value = STEPS[0]!.panel;
}

export function Tour() {
  const at = step.value;
  const now = at === null ? undefined : STEPS[at];
  if (at === null || !now) return null;
  const go = (to: number | null) => {
    step.value = to;
    if (to !== null && STEPS[to]) panel.value = STEPS[to].panel;
  };
  return (
    <div class="tour" role="dialog" aria-label="Tour">
      <p class="hint">
        {at + 1} of {STEPS.length}
      </p>
      <h2>{now.title}</h2>
      <p>{now.text}</p>
      <div class="actions">
        <button type="button" onClick={() => go(null)}>
          End
        </button>
        {at > 0 && (
          <button type="button" onClick={() => go(at - 1)}>
            Back
          </button>
        )}
        <button type="button" class="main" onClick={() => go(at + 1 < STEPS.length ? at + 1 : null)}>
          {at + 1 < STEPS.length ? 'Next' : 'Done'}
        </button>
      </div>
    </div>
  );
}
