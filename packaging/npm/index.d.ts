/// <reference lib="esnext.disposable" />

/** A Steward server for one test run, on a free port of this machine. It ends with this process, and nothing is left of it. */
export function startSteward(options?: StewardOptions): Promise<Server>;

/**
 * Returns the path of the program: that of the variable `STEWARD_BIN`, or the one of this platform's package.
 *
 * @throws if that package is not installed.
 */
export function findSteward(): string;

export interface StewardOptions {
  /** A backup or an export to start from. */
  data?: string;
  /** The time at which the clock stands. By default it runs. */
  now?: string;
  /** The number that ids and keys are drawn from. */
  random?: number;
  /** Whether fields that an operation does not know are refused. */
  strict?: boolean;
  /** Further arguments of `steward test`. */
  args?: string[];
  /** The program. By default that of `findSteward`. */
  binary?: string;
}

/** What a server and an organization have in common. */
export interface Place {
  /** The URL of the service, without a slash at the end. */
  readonly url: string;
  /** The key of the owner, which has all scopes. */
  readonly key: string;
  /** The headers of a request with that key. */
  readonly auth: { Authorization: string };
  /** The id of the organization. */
  readonly organizationId: string;
  /** The id of its first project. */
  readonly project: number;
  /** The clock, which all organizations of a server have in common. */
  readonly clock: Clock;
  /** Returns the mails to an address, or all, oldest first. */
  mails(to?: string): Promise<Mail[]>;
  /** Returns the newest requests to the service, oldest first. */
  requests(filters?: RequestFilters): Promise<RecordedRequest[]>;
  /** Waits until so many requests match, and returns them. Throws a `ControlError` with 408 after the time. */
  waitFor(match: RequestFilters, options?: { count?: number; timeoutMs?: number }): Promise<RecordedRequest[]>;
  /** Replaces all faults. Without rules, ends them. Returns the rules as the server has them. */
  faults(...rules: Fault[]): Promise<(Fault & { id: number; seen: number; applied: number })[]>;
  /** Creates a key of any user, and returns its value. */
  createKey(email: string, scopes: string[], limits?: KeyLimits): Promise<string>;
  /** Sets what the verification of a domain finds at a name. */
  dns(name: string, answer: { txt: string[] } | { error: "servfail" | "timeout" }): Promise<void>;
}

export interface Server extends Place, AsyncDisposable {
  /** The URL of the control plane. */
  readonly testUrl: string;
  /** The key of the member, who has the lowest level. */
  readonly memberKey: string | null;
  /** What the server says when it is ready. */
  readonly ready: Record<string, unknown>;
  /** What the server has logged. */
  readonly log: string;
  /** Creates an organization for one test, with an owner, projects, members and a key for each of them. */
  organization(asked?: { name?: string; projects?: number | string[]; members?: number | NewMember[] }): Promise<Organization>;
  /** Puts everything but the snapshots back to how it was at the start. */
  reset(): Promise<void>;
  /** Saves the state under a name. */
  snapshot(name: string): Promise<void>;
  /** Puts the service back to a snapshot. */
  restore(name: string): Promise<void>;
  /** Calls the control plane. Returns the JSON of the response, or an empty object without one. */
  control(method: string, path: string, body?: unknown): Promise<any>;
  /** Ends the server. */
  close(): Promise<void>;
}

/** An organization for one test, whose keys open nothing else. */
export interface Organization extends Place {
  readonly server: Server;
  readonly name: string;
  readonly projects: { id: number; name: string; api_token: string }[];
  readonly owner: Person;
  readonly members: (Person & { level: number })[];
}

export interface Clock {
  /** Returns the time of the service, such as `2026-03-01T00:00:00Z`. */
  now(): Promise<string>;
  isFrozen(): Promise<boolean>;
  /** Moves it by a length of time such as `72h`. Returns how much of what became due. */
  advance(by: string): Promise<Due>;
  /** Moves it forward to a time. Returns how much of what became due. */
  set(now: string): Promise<Due>;
  /** Stops it. */
  freeze(): Promise<Due>;
  /** Lets it run. */
  run(): Promise<Due>;
}

/** An error of the control plane. */
export class ControlError extends Error {
  readonly status: number;
  readonly body: { type: string; code: string; detail: string; attr: string | null };
}

export interface Person {
  email: string;
  uuid: string;
  api_key: string;
}

export interface NewMember {
  email?: string;
  level?: number;
  scopes?: string[];
}

export interface KeyLimits {
  scoped_organizations?: string[];
  scoped_teams?: number[];
  expires_at?: string;
}

export interface Due {
  mails: number;
  invites: number;
  keys: number;
  deletions: number;
}

export interface RequestFilters {
  method?: string;
  path?: string;
  status?: number;
  operation?: string;
  key?: string;
  since?: number;
  limit?: number;
}

export interface RecordedRequest {
  number: number;
  at: string;
  method: string;
  path: string;
  query: string | null;
  headers: Record<string, string>;
  body: unknown;
  operation: string | null;
  caller: { email: string; key_label: string } | null;
  status: number | null;
  response: unknown;
  duration_ms: number;
  fault: number | null;
  notes: { code: string; detail: string; attr: string | null }[];
}

export interface Mail {
  number: number;
  at: string;
  to: string;
  from: string;
  subject: string;
  text: string;
  kind: string;
  links: { accept_url?: string; token?: string; sign_in_url?: string; code?: string };
}

export interface Fault {
  match?: { method?: string; path?: string; operation?: string; caller?: string; mail?: string };
  after?: number;
  times?: number;
  probability?: number;
  effect: {
    status?: number;
    code?: string;
    detail?: string;
    retry_after?: number;
    delay_ms?: number;
    drop?: "before" | "after_commit";
    truncate?: number;
    stall?: boolean;
    smtp?: 451 | 550;
  };
}
