// How the server is doing: one small chart for each number, one value a second.
import { effect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { boundsOf } from '../geometry';
import { events, history, selected, subscriptions, theme } from '../state';
import type { Subscription } from '../wire';

interface Chart {
  title: string;
  unit: string;
  series: [string, string, string][];
}

const CHARTS: Chart[] = [
  { title: 'Throughput', unit: 'per second', series: [['messages_per_second', 'messages', '#e4572e'], ['deliveries_per_second', 'deliveries', '#2563a8']] },
  { title: 'Time until kept', unit: 'ms', series: [['publish_p50_ms', 'half of them', '#0f8a6d'], ['publish_p99_ms', '99 of 100', '#8a4fbf']] },
  { title: 'Waiting', unit: 'messages', series: [['queued', 'queued', '#d97706']] },
  { title: 'Memory', unit: 'MB', series: [['memory_mb', 'in use', '#2563a8']] },
  { title: 'Live connections', unit: '', series: [['connections', 'open', '#0f8a6d']] },
  { title: 'Late subscriptions', unit: '', series: [['late_subscriptions', 'not yet merged', '#8a4fbf']] },
  { title: 'Webhooks', unit: '', series: [['webhook_failures', 'failed', '#c92a2a']] },
];

export function SystemPanel() {
  return (
    <section class="panel">
      <h2>The system</h2>
      {CHARTS.map((chart) => (
        <ChartOf key={chart.title} chart={chart} />
      ))}
      <Leaders title="Widest subscriptions" found={widest()} />
      <Leaders title="Busiest, of the last events" found={busiest()} />
    </section>
  );
}

const SHOWN_LEADERS = 5;

function widest(): [string, string][] {
  const area = ({ region }: Subscription) => {
    if (!region) return 0;
    const [west, south, east, north] = boundsOf(region);
    return (east - west) * (north - south) * Math.cos((((south + north) / 2) * Math.PI) / 180);
  };
  const all = [...subscriptions.value.values()].map((one): [string, number] => [one.id, area(one)]);
  const KM_PER_DEGREE = 111.2;
  return firstFew(all).map(([id, size]) => [id, `${Math.round(size * KM_PER_DEGREE ** 2).toLocaleString()} km²`]);
}

function busiest(): [string, string][] {
  const counts = new Map<string, number>();
  for (const { data } of events.value) counts.set(data.subscription, (counts.get(data.subscription) ?? 0) + 1);
  return firstFew([...counts]).map(([id, n]) => [id, `${n} events`]);
}

const firstFew = (all: [string, number][]) => all.filter(([, size]) => size > 0).sort((a, b) => b[1] - a[1]).slice(0, SHOWN_LEADERS);

function Leaders({ title, found }: { title: string; found: [string, string][] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {found.map(([id, size]) => (
          <>
            <dt>
              <button type="button" class="link" onClick={() => (selected.value = { kind: 'subscription', id })}>
                {id}
              </button>
            </dt>
            <dd>{size}</dd>
          </>
        ))}
      </dl>
    </section>
  );
}

function ChartOf({ chart }: { chart: Chart }) {
  const holder = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let plot: uPlot | null = null;
    const stop = effect(() => {
      const ink = theme.value === 'dark' ? '#9aa7b4' : '#57606a';
      const line = theme.value === 'dark' ? '#2b3540' : '#e4e7ea';
      plot?.destroy();
      const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: '11px system-ui' };
      plot = new uPlot(
        {
          width: holder.current!.clientWidth,
          height: 110,
          cursor: { show: false },
          legend: { show: false },
          scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
          axes: [{ ...axis, size: 22, space: 80 }, { ...axis, size: 46, values: (_, marks) => marks.map(short) }],
          series: [{}, ...chart.series.map(([, label, stroke]) => ({ label, stroke, width: 1.6, points: { show: false } }))],
        },
        [[], ...chart.series.map(() => [])] as uPlot.AlignedData,
        holder.current!,
      );
    });
    const feed = effect(() => {
      const { at, values } = history.value;
      theme.value;
      plot?.setData([at, ...chart.series.map(([name]) => values[name] ?? at.map(() => null))] as uPlot.AlignedData);
    });
    return () => {
      feed();
      stop();
      plot?.destroy();
    };
  }, []);
  const last = (name: string) => history.value.values[name]?.at(-1);
  return (
    <figure class="chart">
      <figcaption>
        {chart.title} {chart.unit && <span class="hint">{chart.unit}</span>}
        {chart.series.map(([name, label, colour]) => (
          <span class="key">
            <i style={{ background: colour }} /> {label} <b>{last(name) == null ? '–' : short(last(name)!)}</b>
          </span>
        ))}
      </figcaption>
      <div ref={holder} role="img" aria-label={`${chart.title}, the last three minutes`} />
    </figure>
  );
}

function short(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (value >= 1e3) return `${(value / 1e3).toFixed(1)}k`;
  return value >= 10 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}
