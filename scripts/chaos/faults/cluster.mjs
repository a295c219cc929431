export const clusterFaults = [];
