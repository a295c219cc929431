import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "./ports.js";
import { Lane, type Slowness } from "./proxy-lane.js";
import { RespReader } from "./resp.js";

export interface SlowLink {
  /** Latency added in each direction, in ms; default 0. */
  latency?: number;
  /** Bandwidth in each direction. Default: no limit. */
  bytesPerSecond?: number;
}

/** One fault that a test ordered. `lost`: the server answers, but the answer and the connection are lost. */
interface Accident {
  readonly kind: "question" | "answer" | "pass" | "lost";
  readonly about: string;
  readonly happened: () => void;
}

/**
 * A TCP proxy to a real Redis that causes faults on demand. It knows where questions and answers begin and end, but no
 * commands, so any client can use it. A question is what the client sends; an answer, or a message of pub/sub, is what the server
 * sends. To "evalsha" also belong calls of functions (`FCALL`): Carillon sends its most frequent scripts so.
 *
 * @example
 * const proxy = await startFaultProxy(redis);
 * const client = new Client({ connection: proxy.url });
 * const lost = proxy.loseAnswerTo("evalsha"); // Redis runs it, but the client gets no answer
 */
export class FaultProxy {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #connections = new Set<Connection>();
  readonly #server: Server;
  readonly #state: State = {
    accident: undefined,
    countdown: undefined,
    silenced: undefined,
    slow: undefined,
    frozen: false,
    copied: [],
  };
  #refusing = false;
  /** Questions that were passed on, or withheld. */
  questions = 0;
  /** Answers and messages that `silence` kept from the clients. */
  dropped = 0;

  /** Use {@link startFaultProxy}. */
  constructor(port: number, target: { host: string; port: number }) {
    this.port = port;
    this.#target = target;
    this.#server = createServer({ noDelay: true }, (near) => this.#join(near));
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`;
  }

  /** Questions that have no answer yet, on all connections together. */
  get unanswered(): number {
    let count = 0;
    for (const { unanswered } of this.#connections) count += unanswered;
    return count;
  }

  /** Listens; called once, by {@link startFaultProxy}. */
  async listen(): Promise<void> {
    this.#server.listen(this.port, this.host);
    await once(this.#server, "listening");
  }

  /** Ends all connections; new ones are accepted. Returns the number of questions that had no answer yet. */
  cut(): number {
    const { unanswered } = this;
    for (const connection of [...this.#connections]) connection.end();
    return unanswered;
  }

  /** Ends all connections, and refuses new ones until `heal` (ECONNREFUSED). Returns as `cut`. */
  refuse(): number {
    if (!this.#refusing) this.#server.close();
    this.#refusing = true;
    return this.cut();
  }

  /** Half-open: until `heal`, connections are accepted and stay open, but nothing passes in either direction. */
  freeze(): void {
    this.#state.frozen = true;
  }

  /** Delays everything until `heal`, in order. */
  slow(link: SlowLink): void {
    this.#state.slow = {
      latency: link.latency ?? 0,
      bytesPerSecond: link.bytesPerSecond ?? Number.POSITIVE_INFINITY,
    };
  }

  /** Drops answers and messages of pub/sub that contain this text, until `heal`. */
  silence(text: string): void {
    this.#state.silenced = text;
  }

  /**
   * Withholds the next question that contains this text, or its answer, and everything after it on that connection. Resolves when
   * the question has arrived. The connection stays open, and silent, until `cut`, or until `release` of a question.
   */
  withhold(what: "question" | "answer", about: string): Promise<void> {
    return this.#order(what, about);
  }

  /** Passes on the questions that were withheld, and everything after them. */
  release(): void {
    for (const connection of this.#connections) connection.release();
  }

  /**
   * Keeps a copy of each question from now on that contains one of these texts, until `heal`: a request that is still
   * under way somewhere when its sender has given it up. `deliver` lets the copies arrive, over a connection of their
   * own and in their order, as often as it is called.
   */
  copy(...about: readonly string[]): LateCopies {
    const questions: Buffer[] = [];
    this.#state.copied.push({ about, questions });
    return {
      get count() {
        return questions.length;
      },
      deliver: () => deliver(this.#target, [...questions]),
    };
  }

  /** Resolves when a question that contains this text has been passed on. */
  asked(about: string): Promise<void> {
    return this.#order("pass", about);
  }

  /** Loses the answer to the next question that contains this text, and ends the connection. Resolves then. */
  loseAnswerTo(about: string): Promise<void> {
    return this.#order("lost", about);
  }

  /** Loses the `n`th answer from now (0 is the next one), and ends its connection. */
  lose(n: number): void {
    this.#state.countdown = n;
  }

  /** Cancels an ordered fault that has not happened yet. Returns whether there was one. */
  calm(): boolean {
    const { accident, countdown } = this.#state;
    this.#state.accident = undefined;
    this.#state.countdown = undefined;
    return accident !== undefined || countdown !== undefined;
  }

  /** Ends all faults. Connections that lost data end. */
  async heal(): Promise<void> {
    this.calm();
    this.#state.silenced = undefined;
    this.#state.slow = undefined;
    this.#state.frozen = false;
    this.#state.copied = [];
    for (const connection of [...this.#connections]) if (connection.broken) connection.end();
    if (!this.#refusing) return;
    this.#refusing = false;
    await this.listen();
  }

  async close(): Promise<void> {
    const closed = this.#refusing ? undefined : once(this.#server.close(), "close");
    this.cut();
    await closed;
  }

  #order(kind: Accident["kind"], about: string): Promise<void> {
    return new Promise((happened) => {
      this.#state.accident = { kind, about, happened };
    });
  }

  #join(near: Socket): void {
    const connection = new Connection(near, connect({ ...this.#target, noDelay: true }), this.#state, {
      asked: () => {
        this.questions += 1;
      },
      dropped: () => {
        this.dropped += 1;
      },
      over: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
  }
}

/** Starts a proxy in front of a server. `port`: default any free one. */
export async function startFaultProxy(
  target: { host: string; port: number },
  options: { port?: number } = {},
): Promise<FaultProxy> {
  for (let attempt = 1; ; attempt++) {
    const proxy = new FaultProxy(options.port ?? (await freePort()), target);
    try {
      await proxy.listen();
      return proxy;
    } catch (error) {
      // Another process may have taken the port meanwhile.
      if (options.port !== undefined || attempt === 5) throw error;
    }
  }
}

/** The faults of all connections of a proxy. */
interface State {
  accident: Accident | undefined;
  /** Answers until one is lost. */
  countdown: number | undefined;
  silenced: string | undefined;
  slow: Slowness | undefined;
  frozen: boolean;
  copied: { readonly about: readonly string[]; readonly questions: Buffer[] }[];
}

/** Copies of questions that a proxy has kept. */
export interface LateCopies {
  readonly count: number;
  /** Sends them to the server. Resolves with its answers, as it wrote them. */
  deliver(): Promise<string[]>;
}

async function deliver(
  target: { readonly host: string; readonly port: number },
  questions: readonly Buffer[],
): Promise<string[]> {
  const socket = connect({ ...target, noDelay: true });
  await once(socket, "connect");
  const [reader, answers] = [new RespReader(), [] as string[]];
  try {
    for (const question of questions) {
      const count = answers.length;
      socket.write(question);
      while (answers.length === count) {
        const [chunk] = (await once(socket, "data")) as [Buffer];
        for (const answer of reader.read(chunk)) answers.push(answer.toString());
      }
    }
  } finally {
    socket.destroy();
  }
  return answers;
}

/** A call of a function is one of a script, which a newer Redis keeps as a function: it counts as an `evalsha`. */
function contains(question: Buffer, text: string): boolean {
  return (
    question.includes(text) || (text === "evalsha" && FUNCTION_CALL.test(question.toString("latin1", 0, 32)))
  );
}

interface Ears {
  asked(): void;
  dropped(): void;
  over(): void;
}

/** Commands whose answers look like messages. */
const SUBSCRIBES = /^\*\d+\r\n\$\d+\r\n[ps]?(un)?subscribe\r\n/i;
const FUNCTION_CALL = /^\*\d+\r\n\$\d+\r\nfcall\r\n/i;
const MESSAGE = /^(>|\*[34]\r\n\$\d+\r\n([ps]?message|[ps]?(un)?subscribe)\r\n)/;

class Connection {
  readonly #up: Lane;
  readonly #down: Lane;
  /** Questions that are withheld; undefined if they pass. */
  #kept: Buffer[] | undefined;
  #mute = false;
  /** Number of answers before the one that is lost with its connection. */
  #doomed: { left: number; happened: () => void } | undefined;
  unanswered = 0;
  /** Whether data was dropped, so that the two ends are out of step. */
  broken = false;

  constructor(
    private readonly near: Socket,
    private readonly far: Socket,
    private readonly state: State,
    private readonly ears: Ears,
  ) {
    this.#up = new Lane(far);
    this.#down = new Lane(near);
    const [questions, answers] = [new RespReader(), new RespReader()];
    near.on("data", (chunk) => {
      for (const question of questions.read(chunk)) this.#question(question);
    });
    far.on("data", (chunk) => {
      for (const answer of answers.read(chunk)) this.#answer(answer);
    });
    for (const socket of [near, far]) {
      socket.on("error", () => this.end());
      socket.on("close", () => this.end());
    }
  }

  end(): void {
    this.near.destroy();
    this.far.destroy();
    this.ears.over();
  }

  release(): void {
    for (const question of this.#kept ?? []) this.#up.send(question, this.state.slow);
    this.#kept = undefined;
  }

  #question(question: Buffer): void {
    this.ears.asked();
    const { accident, copied, frozen, slow } = this.state;
    for (const { about, questions } of copied)
      if (about.some((text) => contains(question, text))) questions.push(question);
    const now = accident !== undefined && contains(question, accident.about);
    if (now) {
      this.state.accident = undefined;
      if (accident.kind === "question") this.#kept = [];
      if (accident.kind === "answer") this.#mute = true;
      if (accident.kind === "lost") this.#doomed = { left: this.unanswered, happened: accident.happened };
    }
    if (!SUBSCRIBES.test(question.toString("latin1", 0, 64))) this.unanswered += 1;
    if (frozen) this.broken = true;
    else if (this.#kept) this.#kept.push(question);
    else this.#up.send(question, slow);
    if (now && accident.kind !== "lost") accident.happened();
  }

  #answer(answer: Buffer): void {
    const { frozen, silenced, slow } = this.state;
    if (frozen) this.broken = true;
    if (frozen || this.#mute) return;
    const isAnswer = !MESSAGE.test(answer.toString("latin1", 0, 64));
    if (isAnswer && this.#isLost()) return this.end();
    if (isAnswer) this.unanswered = Math.max(0, this.unanswered - 1);
    if (silenced !== undefined && answer.includes(silenced)) this.ears.dropped();
    else this.#down.send(answer, slow);
  }

  #isLost(): boolean {
    const state = this.state;
    if (state.countdown !== undefined) {
      if (state.countdown === 0) {
        state.countdown = undefined;
        return true;
      }
      state.countdown -= 1;
    }
    if (!this.#doomed) return false;
    if (this.#doomed.left > 0) {
      this.#doomed.left -= 1;
      return false;
    }
    this.#doomed.happened();
    return true;
  }
}
