// The bodies of the API, as the console uses them; the whole is in /v1/openapi.json.

export type Position = [number, number];

export type Region =
  | { type: 'Box'; bbox: [number, number, number, number] }
  | { type: 'Circle'; coordinates: Position; radius: number }
  | { type: 'Polygon'; coordinates: Position[][] }
  | { type: 'MultiPolygon'; coordinates: Position[][][] };

export type Place = { type: 'Point'; coordinates: Position } | { type: 'Box'; bbox: [number, number, number, number] };

export type Kind = 'boolean' | 'moving' | 'ranked';

export interface SubscriptionIn {
  kind: Kind;
  id?: string;
  subscriber?: string;
  keywords?: string[];
  interest?: string;
  region?: Region;
  location?: { type: 'Point'; coordinates: Position };
  k?: number;
  spatial_weight?: number;
  tags?: string[];
  metadata?: Record<string, unknown>;
  expires?: string;
  delivery?: Record<string, unknown>;
  paused?: boolean;
}

export interface Subscription extends SubscriptionIn {
  id: string;
  subscriber: string;
  created: string;
  updated: string;
}

export interface MessageIn {
  id?: string;
  location: Place;
  keywords?: string[];
  text?: string;
  lifetime?: number;
}

export interface Message {
  id: string;
  time: string;
  location: Place;
  keywords?: string[];
  text?: string;
  tags?: string[];
  expires?: string;
}

export interface StreamEvent {
  id: string;
  type: string;
  subject: string;
  time: string;
  sequence: string;
  data: {
    subscription: string;
    message?: Message;
    distance?: number;
    keywords?: string[];
    score?: number;
    rank?: number;
    reason?: string;
  };
}

export interface Explanation {
  matched: boolean;
  reasons: string[];
  path: string[];
}

export interface DryRun {
  tried: number;
  hits: number;
  messages: Message[];
  candidates: number;
  clauses: number;
}

export interface TopEntry {
  rank: number;
  score: number;
  message: Message;
}

export interface Stats {
  subscriptions: number;
  messages: number;
  cursor: string;
  oldest_cursor: string;
  engines: Record<string, Record<string, number | string>>;
}

/** What the console is told once a second: new messages, and how the server is doing. */
export interface Pulse {
  cursor: string;
  messages: Message[];
  moved: { subscription: string; region: Region }[];
  system: Record<string, number>;
}

export interface Cell {
  bbox: [number, number, number, number];
  level: number;
  load: number;
}

export interface Recipient {
  subscription: string;
  subscriber: string;
}
