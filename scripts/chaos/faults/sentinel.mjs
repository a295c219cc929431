export const sentinelFaults = [];
