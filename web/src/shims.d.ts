declare module 'world-atlas/*.json';
declare module 'us-atlas/*.json';
