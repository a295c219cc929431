/**
 * A fault may have been injected or not, and may still take effect: nothing that is measured after it can be judged, so the
 * run ends.
 */
export class Unknown extends Error {}
