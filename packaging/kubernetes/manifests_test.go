// Package kubernetes holds the manifests to the types of Kubernetes' own API, and to each other.
// It is a module of its own, so that those types never enter nfsbox.
package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// manifest reads a file of two parts at most. A field that the API does not have fails the test.
func manifest(t *testing.T, name string, into ...any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parts := bytes.Split(text, []byte("\n---\n"))
	if len(parts) != len(into) {
		t.Fatalf("%s: %d parts, want %d", name, len(parts), len(into))
	}
	for i, part := range parts {
		if err := yaml.UnmarshalStrict(part, into[i]); err != nil {
			t.Fatalf("%s, part %d: %v", name, i+1, err)
		}
	}
}

// hostPath is where a container has a directory of the node.
func hostPath(t *testing.T, pod core.PodSpec, dir string) core.VolumeMount {
	t.Helper()
	for _, v := range pod.Volumes {
		if v.HostPath == nil || v.HostPath.Path != dir {
			continue
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name == v.Name {
				return m
			}
		}
	}
	t.Fatalf("%s of the node is not mounted", dir)
	return core.VolumeMount{}
}

// mounted fails unless each volume is mounted, and each mount has its volume.
func mounted(t *testing.T, pod core.PodSpec) {
	t.Helper()
	var volumes, mounts []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	slices.Sort(volumes)
	slices.Sort(mounts)
	if !slices.Equal(volumes, mounts) {
		t.Errorf("volumes %v, mounts %v", volumes, mounts)
	}
}

func command(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "nfsbox")
	build := exec.Command("go", "build", "-o", bin, "./cmd/nfsbox")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestServer: the parts of the server's manifest fit together, it has the capabilities of the
// unit, and the command takes its configuration.
func TestServer(t *testing.T) {
	var config core.ConfigMap
	var set apps.DaemonSet
	manifest(t, "server.yaml", &config, &set)
	if config.Kind != "ConfigMap" || set.Kind != "DaemonSet" || config.APIVersion != "v1" || set.APIVersion != "apps/v1" {
		t.Errorf("%s %s, %s %s", config.APIVersion, config.Kind, set.APIVersion, set.Kind)
	}
	pod := set.Spec.Template.Spec
	mounted(t, pod)
	for key, value := range set.Spec.Selector.MatchLabels {
		if set.Spec.Template.Labels[key] != value {
			t.Errorf("the selector wants %s=%s", key, value)
		}
	}
	unit, err := os.ReadFile("../nfsbox.service")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(unit)) {
		if list, ok := strings.CutPrefix(line, "CapabilityBoundingSet="); ok {
			want = strings.Fields(strings.ReplaceAll(list, "CAP_", ""))
		}
	}
	var got []string
	for _, c := range pod.Containers[0].SecurityContext.Capabilities.Add {
		got = append(got, string(c))
	}
	if !slices.Equal(got, want) {
		t.Errorf("capabilities %v, of the unit %v", got, want)
	}
	text := config.Data["nfsbox.toml"]
	for _, dir := range []string{"/srv", "/var/lib/nfsbox", "/run/nfsbox"} {
		at := hostPath(t, pod, dir).MountPath
		if !strings.Contains(text, `= "`+at+`"`) {
			t.Errorf("%s is mounted and not configured", at)
		}
		here := filepath.Join(t.TempDir(), "d")
		if err := os.Mkdir(here, 0o755); err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, `= "`+at+`"`, `= "`+here+`"`)
	}
	file := filepath.Join(t.TempDir(), "nfsbox.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	check := exec.Command(command(t), "serve", "-c", file, "--check")
	check.Env = append(os.Environ(), "NFSBOX_ALLOW=") // as the image has it
	out, err := check.CombinedOutput()
	if err != nil {
		t.Errorf("serve --check: %v\n%s", err, out)
	}
}

// TestJob: a pod of the job finds the socket where the server's pod puts it, and the command
// knows its arguments.
func TestJob(t *testing.T) {
	var job batch.Job
	manifest(t, "job.yaml", &job)
	var set apps.DaemonSet
	manifest(t, "server.yaml", new(core.ConfigMap), &set)
	pod := job.Spec.Template.Spec
	mounted(t, pod)
	if job.Kind != "Job" || job.APIVersion != "batch/v1" || pod.RestartPolicy != core.RestartPolicyNever {
		t.Errorf("%s %s, restarted: %s", job.APIVersion, job.Kind, pod.RestartPolicy)
	}
	if at := hostPath(t, pod, hostPath(t, set.Spec.Template.Spec, "/run/nfsbox").MountPath); !at.ReadOnly || at.MountPath != "/run/nfsbox" {
		t.Errorf("the socket's directory: %+v", at)
	}
	dir := t.TempDir()
	var args []string
	for _, arg := range pod.Containers[0].Args {
		// Port 1 of this host refuses: the arguments are right when that is what is wrong.
		arg = strings.ReplaceAll(arg, "$(NODE)/", "127.0.0.1:1/")
		args = append(args, strings.ReplaceAll(arg, "/copy/", dir+"/"))
	}
	run := exec.Command(command(t), args...)
	run.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, ".state"))
	out, err := run.CombinedOutput()
	if err == nil || run.ProcessState.ExitCode() != 4 {
		t.Errorf("exit status %d, want 4: %s", run.ProcessState.ExitCode(), out)
	}
}
