import { type Component, MICROS, once } from "./chain.js";

const NAMES = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/** Systemd's limit; far more than any real event has. */
const MAX_COMPONENTS = 240;
const MAX_NUMBER = 2_147_483_647;

/** A chain, `*`, or unreadable. */
type Chain = readonly Component[] | "*";

interface DateParts {
  years?: readonly Component[];
  months?: readonly Component[];
  days?: readonly Component[];
  fromEnd: boolean;
}

interface TimeParts {
  hours?: readonly Component[];
  minutes?: readonly Component[];
  seconds?: readonly Component[];
}

/** Reads the parts of a calendar event from left to right; a part that cannot be read is undefined. */
export class CalendarReader {
  #at = 0;
  /** Details of the fault, if there are any. */
  fault: string | undefined;

  constructor(private readonly text: string) {}

  peek(): string {
    return this.text[this.#at] ?? "";
  }

  /** `Mon..Fri,Sun` as bits, Monday first; 0 when there are none. A `-` for `..` is systemd's older form. */
  weekdays(): number | undefined {
    let bits = 0;
    let rangeFrom = -1;
    for (let first = true; ; first = false) {
      const day = this.#weekday();
      if (day === undefined) return first ? 0 : undefined;
      if (rangeFrom > day) {
        this.fault = "a range of weekdays is reversed.";
        return undefined;
      }
      for (let d = rangeFrom < 0 ? day : rangeFrom; d <= day; d++) bits |= 1 << d;
      const wasRange = rangeFrom >= 0;
      rangeFrom = -1;
      const next = this.peek();
      if (next === "") return bits;
      if (next === " ") return this.#skipSpaces(bits);
      if (next === ",") {
        this.#at++;
        // A comma may end the list.
        if (this.peek() === "" || this.peek() === " ") return this.#skipSpaces(bits);
        continue;
      }
      const mark = this.text.startsWith("..", this.#at) ? 2 : next === "-" ? 1 : 0;
      if (mark === 0 || wasRange) return undefined;
      this.#at += mark;
      rangeFrom = day;
    }
  }

  #weekday(): number | undefined {
    const word = /^[a-z]+/i.exec(this.text.slice(this.#at, this.#at + 10))?.[0].toLowerCase();
    if (word === undefined) return undefined;
    const day = NAMES.findIndex((name) => name === word || name.slice(0, 3) === word);
    if (day < 0 || !["", "-", ".", ",", " "].includes(this.text[this.#at + word.length] ?? ""))
      return undefined;
    this.#at += word.length;
    return day;
  }

  #skipSpaces<T>(value: T): T {
    while (this.peek() === " ") this.#at++;
    return value;
  }

  /** `@1493187147`: the rest of the text. */
  timestamp(): number | undefined {
    const digits = this.text.slice(this.#at + 1);
    return /^\d{1,12}$/.test(digits) ? Number(digits) : undefined;
  }

  /** `year-month-day` or `month-day`, with `~` for the last `-`; all `*` if the text continues with a time. */
  date(): DateParts | undefined {
    const begin = this.#at;
    if (this.peek() === "") return { fromEnd: false };
    const first = this.#chain(1);
    if (first === undefined) return undefined;
    if (this.peek() === "" || this.peek() === ":") {
      this.#at = begin;
      return { fromEnd: false };
    }
    let fromEnd = this.peek() === "~";
    if (!this.#take("-", "~")) return undefined;
    const second = this.#chain(1);
    if (second === undefined) return undefined;
    if (this.#endsWord()) return this.#skipSpaces({ ...chains({ months: first, days: second }), fromEnd });
    if (fromEnd) return undefined;
    fromEnd = this.peek() === "~";
    if (!this.#take("-", "~")) return undefined;
    const third = this.#chain(1);
    if (third === undefined || !this.#endsWord()) return undefined;
    const years = first === "*" ? first : first.map(fullYear);
    return this.#skipSpaces({ ...chains({ years, months: second, days: third }), fromEnd });
  }

  /** `hour:minute[:second]` to the end of the text; midnight when nothing is left. */
  time(): TimeParts | undefined {
    const zero = [once(0)];
    if (this.peek() === "") return { hours: zero, minutes: zero, seconds: zero };
    const hours = this.#chain(1);
    if (hours === undefined || !this.#take(":")) return undefined;
    const minutes = this.#chain(1);
    if (minutes === undefined) return undefined;
    if (this.peek() === "") return { ...chains({ hours, minutes }), seconds: zero };
    if (!this.#take(":")) return undefined;
    const seconds = this.#chain(MICROS);
    if (seconds === undefined || this.peek() !== "") return undefined;
    return {
      ...chains({ hours, minutes }),
      seconds: seconds === "*" ? [{ start: 0, stop: -1, repeat: MICROS }] : seconds,
    };
  }

  #endsWord(): boolean {
    return this.peek() === "" || this.peek() === " ";
  }

  #take(...marks: string[]): boolean {
    if (!marks.includes(this.peek())) return false;
    this.#at++;
    return true;
  }

  #chain(unit: number): Chain | undefined {
    if (this.#take("*")) return "*";
    const chain: Component[] = [];
    do {
      const component = this.#component(unit);
      if (component === undefined || chain.length >= MAX_COMPONENTS) return undefined;
      chain.push(component);
    } while (this.#take(","));
    return chain;
  }

  #component(unit: number): Component | undefined {
    const start = this.#number(unit);
    if (start === undefined) return undefined;
    let stop: number | undefined = -1;
    let repeat: number | undefined = 0;
    if (this.text.startsWith("..", this.#at)) {
      this.#at += 2;
      stop = this.#number(unit);
      repeat = unit;
    }
    if (this.#take("/")) {
      repeat = this.#number(unit);
      if (repeat === 0) return undefined;
    } else if (unit === MICROS && stop !== undefined && stop >= 0 && start + MICROS > stop) {
      // systemd refuses `58..58` for seconds, although it accepts `5..5` for all other fields.
      this.fault = "a range of seconds needs at least two.";
      return undefined;
    }
    if (stop === undefined || repeat === undefined) return undefined;
    return ["", " ", ",", "-", "~", ":"].includes(this.peek()) ? { start, stop, repeat } : undefined;
  }

  /** Digits, and for seconds a fraction, rounded to microseconds. */
  #number(unit: number): number | undefined {
    const begin = this.#at;
    while (this.peek() >= "0" && this.peek() <= "9") this.#at++;
    if (this.#at === begin) return undefined;
    let value = Number(this.text.slice(begin, this.#at)) * unit;
    if (unit === MICROS && this.peek() === "." && this.text[this.#at + 1] !== ".") {
      const point = ++this.#at;
      while (this.peek() >= "0" && this.peek() <= "9") this.#at++;
      if (this.#at === point) return undefined;
      value += Math.round(Number(`0.${this.text.slice(point, this.#at)}`) * MICROS);
    }
    return value > MAX_NUMBER ? undefined : value;
  }
}

/** Omits `*`: a missing chain means any value. */
function chains<K extends string>(parts: Record<K, Chain>): Partial<Record<K, readonly Component[]>> {
  const entries = Object.entries<Chain>(parts).filter(([, chain]) => chain !== "*");
  return Object.fromEntries(entries) as Partial<Record<K, readonly Component[]>>;
}

/** 12 is 2012 and 89 is 1989. */
function fullYear({ start, stop, repeat }: Component): Component {
  const full = (year: number) => (year < 0 || year >= 100 ? year : year < 70 ? year + 2_000 : year + 1_900);
  return { start: full(start), stop: full(stop), repeat };
}
