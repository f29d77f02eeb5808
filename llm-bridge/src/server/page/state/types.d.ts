// The shapes that the page works with. They are those of the server: see `docs/http.md`.

/** A file in a message, or a part of a tool's result. */
export interface ResultPart {
  type: string;
  text?: string;
  name?: string;
  path?: string;
  url?: string;
  size?: number;
  media_type?: string;
  mimeType?: string;
  columns?: string[];
  rows?: unknown[][];
  total?: number;
}

export interface Question {
  id: string;
  message: string;
  schema: any;
  seconds?: number;
  waits?: boolean;
}

export interface CallPart {
  type: 'call';
  id: string;
  name: string;
  dialect: string | null;
  state: 'writing' | 'running' | 'ok' | 'failed' | 'cancelled';
  arguments: unknown;
  /** What the model had asked for, where a person has changed the arguments. */
  asked_for?: unknown;
  message?: string | null;
  progress?: number | null;
  approval?: string | null;
  reason?: string | null;
  question?: Question | null;
  /** When it began, in UTC. */
  began_at?: string | null;
  /** A time in UTC, as the server says it. */
  answer_by?: string | null;
  /** The same by this machine's clock, in milliseconds. */
  deadline?: number | null;
  result?: unknown;
  error?: string | null;
  said?: string | null;
  /** What it has changed, in the tool's words. */
  side_effects?: string[];
  /** When it may be called again, in UTC. */
  retry_at?: string | null;
  duration_ms?: number | null;
  parts?: ResultPart[];
  /** When it was first seen here, in milliseconds. */
  since?: number;
}

/** What a person may have remembered of an approval. */
export type RuleScope =
  | { scope: 'chat'; chat: string }
  | { scope: 'arguments'; arguments: Record<string, unknown> }
  | { scope: 'folder'; folder: string; argument: string; others: Record<string, unknown> };

/** What a person has allowed beforehand. */
export type ApprovalRule = RuleScope & { id: string; tool: string; via: string | null; made_at: string; applies: boolean };

/** A passage of a document that an answer rests on. */
export interface Source {
  number: number;
  path: string;
  section: string;
  place: string;
  /** Empty where its call gives none. */
  text: string;
  /** The numbers by which calls cite it. */
  cited: number[];
}

export interface TextPart { type: 'text'; text: string }
export interface ReasoningPart { type: 'reasoning'; text: string; ms?: number | null; began?: number }
export interface NoticePart { type: 'notice'; text: string }
export interface FilePart extends ResultPart { type: 'image' | 'audio' | 'video' | 'file' }
export type Part = TextPart | ReasoningPart | NoticePart | CallPart | FilePart;

export interface Message {
  id: string;
  parent: string | null;
  role: 'user' | 'assistant';
  status: 'running' | 'done' | 'stopped' | 'cut_off' | 'failed';
  parts: Part[];
  model?: string | null;
  created_at?: string;
  finish_reason?: string | null;
  usage?: { completion_tokens?: number } | null;
  duration_ms?: number | null;
  error?: { message: string; type?: string } | null;
  /** All text of the stream, that of tools too. */
  shown?: string;
}

export interface Settings {
  model?: string | null;
  system?: string | null;
  temperature?: number | null;
  top_p?: number | null;
  max_tokens?: number | null;
  thinking?: string | null;
  tools?: string[] | null;
  persona?: string | null;
}

export interface Listed {
  id: string;
  title: string;
  titled_by?: string;
  pinned: boolean;
  running: boolean;
  created_at: string;
  updated_at: string;
  found?: { message: string; text: string };
}

export interface Chat {
  /** `null` until the first message is sent. */
  id: string | null;
  /** What a chat that was begun here is told from another by, also before it has an id. */
  begun?: object;
  title: string;
  settings: Settings;
  messages: Message[];
  leaf: string | null;
}

export interface Limit { value: number; from: 'tool' | 'admin'; own: number }

export interface Tool {
  name: string;
  title?: string;
  module: string;
  description: string;
  level: string;
  effect: string;
  reads?: string[];
  sends?: string;
  enabled: boolean;
  reason?: string;
  deferred?: boolean;
  tokens?: number;
  version?: string | null;
  source?: string;
  parameters?: any;
  /** How often one user may call it. */
  limits?: { daily_limit: Limit; cooldown_seconds: Limit };
}

export interface Health { status: string; upstream: string; model: string | null; tools: number; sign_in?: boolean; dev: boolean }

/** Who sends requests; `configured` for who needs no key. */
export interface Account { user: string; level: string; tenant: string; configured: boolean; operator: boolean }

/** Who is signed in; `session` is `null` for who came with a key. */
export interface Session { user: string; level: string; session: string | null }

export interface DocumentRow {
  path: string;
  title: string;
  kind: string;
  bytes: number;
  passages: number;
  added: string;
  removable: boolean;
}

export interface Library {
  documents: DocumentRow[];
  total: number;
  may_add: boolean;
  extensions: string[];
  max_bytes: number;
}

export interface Picked { name: string; file: File | null }
export interface Attachment { name: string; type: string; size: number; data: string; text?: string }
