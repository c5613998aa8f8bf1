// The key, asked for once in a tab.
import { useSignal } from '@preact/signals';
import { api, Refusal, useKey } from '../api';

export function Entrance() {
  const given = useSignal('');
  const problem = useSignal<string | null>(null);
  const enter = async (event: Event) => {
    event.preventDefault();
    try {
      await api.tryKey(given.value.trim());
      useKey(given.value.trim());
    } catch (refused) {
      problem.value = refused instanceof Refusal ? refused.message : 'the server does not answer';
    }
  };
  return (
    <main class="entrance">
      <form onSubmit={enter}>
        <h1>
          <img src="./mark.svg" alt="" width={36} height={36} /> nearcast
        </h1>
        <p>Messages find the people they concern.</p>
        <label class="field">
          <span class="label">API key</span>
          <input name="key" type="password" autocomplete="off" autofocus value={given.value} onInput={(e) => (given.value = e.currentTarget.value)} />
          {problem.value ? (
            <span class="problem" role="alert">
              {problem.value}
            </span>
          ) : (
            <span class="hint">made by: nearcast key create; kept in this tab only</span>
          )}
        </label>
        <button class="main" type="submit" disabled={!given.value.trim()}>
          Enter
        </button>
      </form>
    </main>
  );
}
