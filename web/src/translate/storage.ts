/** Storage of the browser, which may be forbidden or full: then nothing is remembered. */

export type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;

export function guarded(find: () => Store): Store {
  const attempt = <T>(use: (store: Store) => T): T | null => {
    try {
      return use(find());
    } catch {
      return null;
    }
  };
  return {
    getItem: (name) => attempt((store) => store.getItem(name)),
    setItem: (name, value) => void attempt((store) => store.setItem(name, value)),
    removeItem: (name) => void attempt((store) => store.removeItem(name)),
  };
}

export const local = guarded(() => localStorage);
export const session = guarded(() => sessionStorage);
