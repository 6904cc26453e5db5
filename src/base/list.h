/* A circular, doubly linked list whose links live in the items. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

/* The item of a type whose member is the link at p. */
#define list_item(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

/* Walks from the first; the current item may be removed, no other. */
#define list_each(head, it)                                                   \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head); \
         it = it##_next, it##_next = it->next)

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_add_tail(struct list *head, struct list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

/* Leaves the item an empty list of its own: removing twice is harmless. */
static inline void list_del(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

#endif
