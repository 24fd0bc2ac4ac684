package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"reflect"
)

// A Widget gets a ConfigMap and then a Secret. With the bug its own ConfigMap is proof that both have been made.
func crash(c *controller, bug string) func(key) error {
	all, made, hidden := c.follow(widgets, keysOf), c.follow(configs, ofOwner), c.follow(secrets, ofOwner)
	return eachLiving(all, func(of key, widget object) error {
		if made.get(of) == nil {
			if err := c.create(pathOf("configmaps", of), owned(widget, object{"size": size(widget)})); err != nil {
				return err
			}
		} else if bug != "" {
			return nil
		}
		if hidden.get(of) == nil {
			data := object{"k": base64.StdEncoding.EncodeToString([]byte("v"))}
			return c.create(pathOf("secrets", of), owned(widget, data))
		}
		return nil
	})
}

// A Widget gets a ConfigMap that is deleted before the finalizer goes. With the bug it is deleted by its name, whosever it is.
func stale(c *controller, bug string) func(key) error {
	const finalizer = "example.com/data"
	all, made := c.follow(widgets, keysOf), c.follow(configs, ofLabel)
	return func(of key) error {
		widget := all.get(of)
		if widget == nil {
			return nil
		}
		name, uid := "data-"+of.name, text(widget, "metadata", "uid")
		data := made.get(key{of.namespace, name})
		finalizers := func(wanted ...any) error {
			version := text(widget, "metadata", "resourceVersion")
			meant := object{"uid": uid, "resourceVersion": version, "finalizers": append([]any{}, wanted...)}
			return c.patch(pathOf("widgets", of, of.name), object{"metadata": meant})
		}
		has := at(widget, "metadata", "finalizers") != nil
		if !isDeleting(widget) {
			if !has {
				if err := finalizers(finalizer); err != nil {
					return err
				}
			}
			if data == nil {
				labels := object{"widget": of.name, "of": uid}
				return c.create(pathOf("configmaps", of), object{
					"metadata": object{"name": name, "labels": labels}, "data": object{"kept": "yes"},
				})
			}
			return nil
		}
		if !has {
			return nil
		}
		path, err := pathOf("configmaps", of, name), error(nil)
		if bug != "" {
			err = c.delete(path, "")
		} else if data != nil && text(data, "metadata", "labels", "of") == uid {
			err = c.delete(path, text(data, "metadata", "uid"))
		}
		if err != nil {
			return err
		}
		return finalizers()
	}
}

// A Widget gets a ConfigMap with its size. With the bug only the event of the deletion of the Widget takes an old one away.
func unobserved(c *controller, bug string) func(key) error {
	all, made := c.follow(widgets, keysOf), c.follow(configs, ofLabel)
	return func(of key) error {
		name := "of-" + of.name
		widget, there, path := all.get(of), made.get(key{of.namespace, name}), pathOf("configmaps", of, name)
		if widget == nil {
			if there != nil {
				return c.delete(path, text(there, "metadata", "uid"))
			}
			return nil
		}
		if there == nil {
			metadata := object{"name": name, "labels": object{"widget": of.name}}
			return c.create(pathOf("configmaps", of), object{"metadata": metadata, "data": object{"size": size(widget)}})
		}
		if bug == "" && text(there, "data", "size") != size(widget) {
			return c.patch(path, object{"data": object{"size": size(widget)}})
		}
		return nil
	}
}

// A Widget gets a ConfigMap. With the bug the server makes its name, and a creation without an answer is repeated.
func ambiguous(c *controller, bug string) func(key) error {
	all, made := c.follow(widgets, keysOf), c.follow(configs, ofOwner)
	return eachLiving(all, func(of key, widget object) error {
		if isOwner(of, made) {
			return nil
		}
		value := owned(widget, object{"size": "1"})
		if bug != "" {
			generateName(value)
		}
		err := c.create(pathOf("configmaps", of), value)
		for attempt := 0; err != nil && attempt < 2; attempt++ {
			if _, answered := err.(*refused); answered {
				break
			}
			err = c.create(pathOf("configmaps", of), value)
		}
		return unlessThere(err)
	})
}

// A Widget gets a ConfigMap. With the bug what was refused is not tried again.
func refusals(c *controller, bug string) func(key) error {
	all, made := c.follow(widgets, keysOf), c.follow(configs, ofOwner)
	return eachLiving(all, func(of key, widget object) error {
		if made.get(of) != nil {
			return nil
		}
		err := unlessThere(c.create(pathOf("configmaps", of), owned(widget, object{"size": "1"})))
		if bug != "" && err != nil {
			fmt.Fprintln(os.Stderr, of, err)
			return nil
		}
		return err
	})
}

// A Widget gets a ConfigMap. With the bug `unwatched` nothing sees that it goes away; with `field` it has to be there only.
func drift(c *controller, bug string) func(key) error {
	all, made := c.follow(widgets, keysOf), (*informer)(nil)
	if bug != "unwatched" {
		made = c.follow(configs, ofOwner)
	}
	return eachLiving(all, func(of key, widget object) error {
		var there object
		if made != nil {
			there = made.get(of)
		}
		wanted := owned(widget, object{"size": size(widget)})
		if there == nil {
			err := c.create(pathOf("configmaps", of), wanted)
			if made == nil && isRefused(err, "AlreadyExists") {
				return nil
			}
			return err
		}
		if bug != "field" && text(there, "data", "size") != size(widget) {
			return c.patch(pathOf("configmaps", of, of.name), object{"data": wanted["data"]})
		}
		return nil
	})
}

// A Widget gets a ConfigMap. With the bug the server makes its name, and a cache that lags behind means that there is none yet.
func order(c *controller, bug string) func(key) error {
	all, made := c.follow(widgets, keysOf), c.follow(configs, ofOwner)
	return eachLiving(all, func(of key, widget object) error {
		if isOwner(of, made) {
			return report(c, widget, object{"size": at(widget, "spec", "size")})
		}
		value := owned(widget, object{"kept": "yes"})
		if bug != "" {
			generateName(value)
		}
		return unlessThere(c.create(pathOf("configmaps", of), value))
	})
}

// A Widget gets a Deployment, and its status says whether it is ready. With the bug it does not look again once that has failed.
func workload(c *controller, bug string) func(key) error {
	all, made := c.follow(widgets, keysOf), c.follow(deployments, ofOwner)
	return eachLiving(all, func(of key, widget object) error {
		phase := text(widget, "status", "phase")
		if bug != "" && phase == "Failed" {
			return nil
		}
		deployment := made.get(of)
		if deployment == nil {
			return c.create(pathOf("deployments", of), deploymentOf(widget))
		}
		available, _ := at(deployment, "status", "availableReplicas").(float64)
		if available >= at(widget, "spec", "size").(float64) {
			return report(c, widget, object{"phase": "Ready"})
		}
		if phase == "Ready" {
			return report(c, widget, object{"phase": "Failed"})
		}
		return nil
	})
}

func deploymentOf(widget object) object {
	labels := object{"widget": text(widget, "metadata", "name")}
	containers := []any{object{"name": "main", "image": "example.com/main:1"}}
	return object{"metadata": owned(widget, nil)["metadata"], "spec": object{
		"replicas": at(widget, "spec", "size"),
		"selector": object{"matchLabels": labels},
		"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": containers}},
	}}
}

// A Widget that is paused gets a ConfigMap that says so. With the bug that stays when the Widget goes on.
func spec(c *controller, bug string) func(key) error {
	all, made := c.follow(widgets, keysOf), c.follow(configs, ofOwner)
	return eachLiving(all, func(of key, widget object) error {
		name, err := of.name+"-paused", error(nil)
		note, isPaused := made.get(key{of.namespace, name}), at(widget, "spec", "paused") == true
		if isPaused && note == nil {
			value := owned(widget, object{"paused": "yes"})
			value["metadata"].(object)["name"] = name
			err = c.create(pathOf("configmaps", of), value)
		} else if !isPaused && note != nil && bug == "" {
			err = c.delete(pathOf("configmaps", of, name), text(note, "metadata", "uid"))
		}
		if err != nil {
			return err
		}
		return report(c, widget, object{"size": at(widget, "spec", "size")})
	})
}

// eachLiving reconciles the Widgets of a cache that are not being deleted.
func eachLiving(all *informer, reconcile func(of key, widget object) error) func(key) error {
	return func(of key) error {
		widget := all.get(of)
		if widget == nil || isDeleting(widget) {
			return nil
		}
		return reconcile(of, widget)
	}
}

// isOwner says whether a cache has an object that the Widget owns, under whatever name.
func isOwner(of key, cache *informer) bool {
	for _, item := range cache.all() {
		if owners := ofOwner(item); len(owners) > 0 && owners[0] == of {
			return true
		}
	}
	return false
}

// generateName lets the server make the name of an object, from the one that it has.
func generateName(value object) {
	metadata := value["metadata"].(object)
	metadata["generateName"] = text(metadata, "name") + "-"
	delete(metadata, "name")
}

// unlessThere is the error of a creation, nil if the object is there already.
func unlessThere(err error) error {
	if isRefused(err, "AlreadyExists") {
		return nil
	}
	return err
}

// report writes the status, if it is another one.
func report(c *controller, widget, status object) error {
	if reflect.DeepEqual(at(widget, "status"), any(status)) {
		return nil
	}
	of := keyOf(widget)
	return c.patch(pathOf("widgets", of, of.name, "status"), object{"status": status})
}
