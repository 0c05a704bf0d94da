/** Access to the storage of the browser. If the storage is forbidden or full, nothing is stored, and no error is thrown. */

export type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/** A store that ignores all errors of another store, including errors when `getStore` is called. */
export function guarded(getStore: () => Store): Store {
  const attempt = <T>(use: (store: Store) => T): T | null => {
    try {
      return use(getStore());
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
