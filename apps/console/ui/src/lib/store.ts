import { useSyncExternalStore } from "react";

/** A value that stands outside of components, with a hook that renders again when it changes. */
export function store<Value>(first: Value) {
  let value = first;
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    get: () => value,
    set: (to: Value) => {
      if (to === value) return;
      value = to;
      for (const listener of listeners) listener();
    },
    useValue: () => useSyncExternalStore(subscribe, () => value),
  };
}

/**
 * A choice that this browser keeps; the first one is the usual one.
 *
 * @param name attribute `data-NAME` of the document, which any other choice sets for the styles
 */
export function kept<Choice extends string>(
  key: string,
  choices: readonly [Choice, ...Choice[]],
  name?: string,
) {
  const stored = localStorage.getItem(key);
  const choice = store(choices.find((one) => one === stored) ?? choices[0]);
  const show = (to: Choice) => {
    if (name === undefined) return;
    const { dataset } = document.documentElement;
    if (to === choices[0]) delete dataset[name];
    else dataset[name] = to;
  };
  show(choice.get());
  const set = (to: Choice) => {
    localStorage.setItem(key, to);
    show(to);
    choice.set(to);
  };
  return { choices, useValue: choice.useValue, set };
}

/** Whether a query of the screen holds. */
export function useMedia(media: MediaQueryList): boolean {
  const subscribe = (listener: () => void) => {
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  };
  return useSyncExternalStore(subscribe, () => media.matches);
}
