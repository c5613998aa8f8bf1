import { useEffect } from 'preact/hooks';
import { key, useKey } from './api';
import { connection } from './live';
import { MapPane, showAll } from './map/view';
import { Details } from './panels/details';
import { Entrance } from './panels/entrance';
import { InboxPanel } from './panels/inbox';
import { IndexPanel } from './panels/index';
import { PublishPanel } from './panels/publish';
import { SubscribePanel } from './panels/subscribe';
import { SystemPanel } from './panels/system';
import { startTour, Tour } from './panels/tour';
import { start } from './start';
import { attempt, events, follow, messages, notice, panel, subscriptions, theme, type Panel } from './state';

const PANELS: [Panel, string, () => preact.JSX.Element][] = [
  ['subscribe', 'Subscribe', SubscribePanel],
  ['publish', 'Publish', PublishPanel],
  ['inbox', 'Inbox', InboxPanel],
  ['index', 'Index', IndexPanel],
  ['system', 'System', SystemPanel],
];

export function App() {
  if (key.value === null) return <Entrance />;
  return <Console />;
}

function Console() {
  useEffect(() => {
    void attempt(follow).then(showAll);
    // Shown once what there is has come, not when following ends.
    const stop = subscriptions.subscribe((all) => {
      if (all.size) {
        showAll();
        queueMicrotask(() => stop?.());
      }
    });
    if (start.isTour) startTour();
  }, []);
  const Shown = PANELS.find(([name]) => name === panel.value)![2];
  return (
    <div class="console">
      <header>
        <h1>
          <img src="./mark.svg" alt="" width={24} height={24} /> nearcast
        </h1>
        <p class="counts">
          <b>{subscriptions.value.size.toLocaleString()}</b> subscriptions · <b>{messages.value.length.toLocaleString()}</b> messages
        </p>
        <span class={`connection ${connection.value}`} role="status">
          {connection.value}
        </span>
        <button type="button" onClick={startTour}>
          Tour
        </button>
        <button type="button" onClick={() => (theme.value = theme.value === 'dark' ? 'light' : 'dark')}>
          {theme.value === 'dark' ? 'Light' : 'Dark'}
        </button>
        <button type="button" onClick={() => useKey(null)}>
          Leave
        </button>
      </header>
      <nav aria-label="Panels">
        {PANELS.map(([name, title]) => (
          <button type="button" aria-current={panel.value === name ? 'page' : undefined} onClick={() => (panel.value = name)}>
            {title}
            {name === 'inbox' && events.value.length > 0 && <span class="badge">{Math.min(events.value.length, 99)}</span>}
          </button>
        ))}
      </nav>
      <div class="side">
        <Shown />
      </div>
      <main>
        <MapPane />
        <Details />
        <Tour />
        {notice.value && (
          <div class={`notice ${notice.value.isBad ? 'bad' : ''}`} role="alert">
            {notice.value.text}
          </div>
        )}
      </main>
    </div>
  );
}
