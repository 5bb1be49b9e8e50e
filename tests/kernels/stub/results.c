// SPDX-License-Identifier: GPL-2.0
/* Scripted results of calls. Scripts are set by write(2), so that a tracer of ioctls sees no additional calls. */
#include "stub.h"

#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

struct entry {
    struct list_head list;
    pid_t tid; /* threads share files, but not results */
    struct stub_script script;
};

struct results {
    spinlock_t lock;
    struct list_head entries;
};

int stub_open(struct file* file)
{
    struct results* results = kzalloc(sizeof(*results), GFP_KERNEL);

    if (!results)
        return -ENOMEM;
    spin_lock_init(&results->lock);
    INIT_LIST_HEAD(&results->entries);
    file->private_data = results;
    return 0;
}

void stub_release(struct file* file)
{
    struct results* results = file->private_data;
    struct entry *entry, *next;

    list_for_each_entry_safe (entry, next, &results->entries, list) {
        kfree(entry);
    }
    kfree(results);
}

ssize_t stub_write(struct file* file, const char __user* buffer, size_t size, loff_t* offset)
{
    struct results* results = file->private_data;
    struct entry* entry;

    if (size != sizeof(entry->script))
        return -EINVAL;
    entry = kzalloc(sizeof(*entry), GFP_KERNEL);
    if (!entry)
        return -ENOMEM;
    if (copy_from_user(&entry->script, buffer, size)) {
        kfree(entry);
        return -EFAULT;
    }
    entry->tid = current->pid;
    entry->script.xid_name[sizeof(entry->script.xid_name) - 1] = '\0';
    entry->script.xid_text[sizeof(entry->script.xid_text) - 1] = '\0';
    if (!entry->script.calls) {
        stub_xid(&entry->script);
        kfree(entry);
        return size;
    }
    spin_lock(&results->lock);
    list_add_tail(&entry->list, &results->entries);
    spin_unlock(&results->lock);
    return size;
}

/* The script for this call; all zero if there is none. */
static struct stub_script next_of_thread(struct results* results)
{
    struct stub_script script = {};
    struct entry* entry;

    spin_lock(&results->lock);
    list_for_each_entry (entry, &results->entries, list) {
        if (entry->tid != current->pid)
            continue;
        script = entry->script;
        if (!--entry->script.calls) {
            list_del(&entry->list);
            kfree(entry);
        }
        break;
    }
    spin_unlock(&results->lock);
    return script;
}

static bool readable(unsigned long arg, size_t size)
{
    void* copy;
    bool ok;

    if (!size || size > (1 << 20))
        return !size;
    copy = kvmalloc(size, GFP_KERNEL);
    ok = copy && !copy_from_user(copy, (void __user*)arg, size);
    kvfree(copy);
    return ok;
}

/* False if a fatal signal interrupted the delay. */
static bool delayed(u32 microseconds)
{
    ktime_t time = ns_to_ktime((u64)microseconds * NSEC_PER_USEC);

    if (microseconds) {
        set_current_state(TASK_KILLABLE);
        schedule_hrtimeout(&time, HRTIMER_MODE_REL);
    }
    return !microseconds || !fatal_signal_pending(current);
}

long stub_call(struct file* file, size_t size, unsigned long arg)
{
    struct stub_script script = next_of_thread(file->private_data);

    if (!readable(arg, size) || !readable(script.touch_at, script.touch_size))
        return -EFAULT;
    if (!delayed(script.delay_us))
        return -EINTR;
    if (script.status_at && put_user(script.status, (u32 __user*)script.status_at))
        return -EFAULT;
    if (script.xid)
        stub_xid(&script);
    return script.result;
}

int stub_mmap(struct vm_area_struct* vma)
{
    struct page* page = alloc_page(GFP_KERNEL | __GFP_ZERO);
    int error = page ? vm_insert_page(vma, vma->vm_start, page) : -ENOMEM;

    if (page)
        put_page(page);
    return error;
}
